/** The verbs behind `/admin/openapi-imports`: OpenAPI documents, as operators see them. */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import type { Skill } from '../../../core/skills/registry.ts';
import { bind } from '../../../kernel/bind.ts';
import { PlatformError } from '../../../kernel/errors.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Json } from '../../../kernel/json.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { RemoteSkills, SourceFields } from '../remote-skills.ts';
import { createSourceVerbs, type ReadVersion, sourceSummary, textIn } from '../source-verbs.ts';
import type { SourceRow } from '../sources.store.ts';
import type { ListedOperations } from './read-document.ts';
import {
  credentialsOriginOf,
  type OpenapiFields,
  type OpenapiSecrets,
  type OpenapiSettings,
  sourceFieldsOf,
} from './settings.ts';

const kind = 'api';
/** For a document that is fetched and read. */
const previewMs = 30_000;

export type OpenapiImports = ReturnType<typeof createOpenapiImports>;

export interface OpenapiImportsDeps {
  readonly remote: Omit<RemoteSkills, 'run' | 'close'>;
  readonly allowed: AllowList;
  /** Lists the operations of a document. Throws RemoteFault. */
  readonly operationsOf: (source: RemoteSource, signal: AbortSignal) => Promise<ListedOperations>;
  /** The skills of a category, active or not. */
  skillsOf(category: string): readonly Skill[];
}

export function createOpenapiImports(deps: OpenapiImportsDeps) {
  const verbs = createSourceVerbs({ ...deps, kind, summary });
  const { decide, require, find, findVersion, list, refresh } = verbs;
  return {
    ...{ require, find, findVersion, list, refresh },
    ...bind({ ...deps, verbs }, { add, replace, preview, remove }),
    activate: (name: string, versions: readonly Activation[]) =>
      decide('activate', name, versions.map(readVersion)),
    reject: (name: string, versions: readonly Activation[]) =>
      decide('reject', name, versions.map(readVersion)),
  };
}

interface OpenapiImportsState extends OpenapiImportsDeps {
  readonly verbs: Pick<ReturnType<typeof createSourceVerbs<Summary>>, 'detail' | 'rowOf'>;
}

type Summary = ReturnType<typeof summary>;

/** A version in quarantine, with the digest that was read. */
export interface Activation {
  readonly skill_name: string;
  readonly version: string;
  readonly digest: string;
}

const readVersion = ({ skill_name: skillName, version, digest }: Activation): ReadVersion => ({
  ...{ skillName, version, digest },
});

async function add(state: OpenapiImportsState, name: string, fields: OpenapiFields) {
  const { remote, allowed, verbs } = state;
  return verbs.detail(await remote.add(kind, name, sourceFieldsOf(allowed, fields)));
}

async function replace(state: OpenapiImportsState, name: string, fields: OpenapiFields) {
  const { remote, verbs } = state;
  const source = await verbs.rowOf(name);
  return verbs.detail(await remote.replace(source, changedFields(state, source, fields)));
}

function changedFields(
  { remote, allowed }: OpenapiImportsDeps,
  source: SourceRow,
  fields: OpenapiFields,
): SourceFields {
  const settings = settingsOf(source);
  const keepsSecret = Object.values(fields.auth ?? {}).includes(null);
  const secrets: OpenapiSecrets = keepsSecret ? remote.secretsOf(source) : {};
  const origin = credentialsOriginOf(settings, JSON.parse(source.about) as Json);
  const stored = { hasDocument: settings.url === null, secrets, auth: settings.auth, origin };
  return sourceFieldsOf(allowed, fields, stored);
}

/** The operations of a document; nothing is stored. `name` is an import whose stored values stand for null. */
async function preview(state: OpenapiImportsState, name: string | null, fields: OpenapiFields) {
  const { remote, allowed, operationsOf, verbs } = state;
  const stored = name === null ? null : await verbs.rowOf(name);
  const { settings, secrets, document } =
    stored === null ? sourceFieldsOf(allowed, fields) : changedFields(state, stored, fields);
  const kept = document === undefined && stored !== null ? await remote.documentOf(stored) : null;
  const source = {
    ...{ id: `preview-${newId()}`, name: name ?? 'the document', settings, secrets },
    ...{ document: document ?? kept, about: {}, organizations: null },
  };
  try {
    return await operationsOf(source, AbortSignal.timeout(previewMs));
  } catch (error) {
    if (!(error instanceof RemoteFault)) throw error;
    throw new PlatformError('conflict', error.message, { cause: error });
  }
}

async function remove({ remote, verbs }: OpenapiImportsState, name: string): Promise<void> {
  await remote.remove(await verbs.rowOf(name));
}

function settingsOf(source: SourceRow): OpenapiSettings {
  return JSON.parse(source.settings) as OpenapiSettings;
}

/** An import without its skills. */
function summary(source: SourceRow) {
  const settings = settingsOf(source);
  const about = JSON.parse(source.about) as Json;
  return {
    ...sourceSummary(source, about),
    url: settings.url,
    base_url: settings.base_url ?? textIn(about['base_url']),
    is_base_url_set: settings.base_url !== null,
    operations: settings.operations === null ? null : [...settings.operations],
    auth: settings.auth,
    timeout_ms: settings.timeout_ms,
    retried_operations: [...settings.idempotent_tools],
    // Imports have no accounts of organizations.
    status: source.status === 'needs_authorization' ? ('failing' as const) : source.status,
    document: {
      title: textIn(about['title']),
      version: textIn(about['version']),
      openapi: textIn(about['openapi']),
    },
  };
}
