/** The verbs behind `/admin/openapi-imports`: OpenAPI documents, as operators see them. */
import type { PageAsked } from '../../database/page-bytes.ts';
import type { AllowList } from '../../egress/allow-list.ts';
import { bind } from '../../kernel/bind.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import type { Skill } from '../../skills/registry.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { RemoteSkills, SourceFields } from '../remote-skills.ts';
import type { SourceRow } from '../sources.store.ts';
import { categoryOf } from '../state.ts';
import { countsByState, pinnedVersionView, versionViews } from '../version-views.ts';
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
  return bind(deps, {
    add,
    require,
    find,
    findVersion,
    list,
    replace,
    refresh,
    activate,
    reject,
    preview,
    remove,
  });
}

async function add(deps: OpenapiImportsDeps, name: string, fields: OpenapiFields) {
  const { remote, allowed } = deps;
  return detail(deps, await remote.add(kind, name, sourceFieldsOf(allowed, fields)));
}

/** Throws `404` for an unknown one. */
async function require({ remote }: OpenapiImportsDeps, name: string): Promise<void> {
  await remote.find(kind, name);
}

async function find(deps: OpenapiImportsDeps, name: string) {
  return detail(deps, await deps.remote.find(kind, name));
}

/** A version with all that is pinned of it. */
async function findVersion(
  { remote, skillsOf }: OpenapiImportsDeps,
  name: string,
  asked: { readonly skillName: string; readonly version: string },
) {
  const source = await remote.find(kind, name);
  return pinnedVersionView(source, await remote.versionOf(source, asked), skillsOf);
}

async function list({ remote }: OpenapiImportsDeps, page: PageAsked) {
  const { sources, total } = await remote.list(kind, page);
  const data = sources.map(({ source, counts = [] }) => ({
    ...summary(source),
    skills: countsByState(counts),
  }));
  return { data, total };
}

async function replace(deps: OpenapiImportsDeps, name: string, fields: OpenapiFields) {
  const { remote } = deps;
  const source = await remote.find(kind, name);
  return detail(deps, await remote.replace(source, changedFields(deps, source, fields)));
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
async function preview(deps: OpenapiImportsDeps, name: string | null, fields: OpenapiFields) {
  const { remote, allowed } = deps;
  const stored = name === null ? null : await remote.find(kind, name);
  const { settings, secrets, document } =
    stored === null ? sourceFieldsOf(allowed, fields) : changedFields(deps, stored, fields);
  const kept = document === undefined && stored !== null ? await remote.documentOf(stored) : null;
  const source = {
    ...{ id: `preview-${newId()}`, name: name ?? 'the document', settings, secrets },
    ...{ document: document ?? kept, about: {} },
  };
  try {
    return await deps.operationsOf(source, AbortSignal.timeout(previewMs));
  } catch (error) {
    if (!(error instanceof RemoteFault)) throw error;
    throw new PlatformError('conflict', error.message, { cause: error });
  }
}

async function refresh(deps: OpenapiImportsDeps, name: string) {
  return detail(deps, await deps.remote.refresh((await deps.remote.find(kind, name)).id));
}

/** A version in quarantine, with the digest that was read. */
export interface Activation {
  readonly skill_name: string;
  readonly version: string;
  readonly digest: string;
}

/** Activates versions one after the other; the first that cannot be activated ends it. */
async function activate(deps: OpenapiImportsDeps, name: string, versions: readonly Activation[]) {
  const source = await deps.remote.find(kind, name);
  for (const { skill_name: skillName, version, digest } of versions) {
    await deps.remote.activate(source, { skillName, version, digest });
  }
  return find(deps, name);
}

/** Rejects versions one after the other; the first that cannot be rejected ends it. */
async function reject(deps: OpenapiImportsDeps, name: string, versions: readonly Activation[]) {
  const source = await deps.remote.find(kind, name);
  for (const { skill_name: skillName, version, digest } of versions) {
    await deps.remote.reject(source, { skillName, version, digest });
  }
  return find(deps, name);
}

async function remove({ remote }: OpenapiImportsDeps, name: string): Promise<void> {
  await remote.remove(await remote.find(kind, name));
}

function settingsOf(source: SourceRow): OpenapiSettings {
  return JSON.parse(source.settings) as OpenapiSettings;
}

/** An import without its skills. */
function summary(source: SourceRow) {
  const settings = settingsOf(source);
  const about = JSON.parse(source.about) as Json;
  const textIn = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    name: source.name,
    category: categoryOf(source),
    url: settings.url,
    base_url: settings.base_url ?? textIn(about['base_url']),
    is_base_url_set: settings.base_url !== null,
    operations: settings.operations === null ? null : [...settings.operations],
    auth: settings.auth,
    timeout_ms: settings.timeout_ms,
    retried_operations: [...settings.idempotent_tools],
    // Imports have no accounts of organizations.
    status: source.status === 'needs_authorization' ? ('failing' as const) : source.status,
    fault: source.fault,
    fault_at: timestampOrNull(source.fault_at),
    refreshed_at: timestampOrNull(source.refreshed_at),
    document: {
      title: textIn(about['title']),
      version: textIn(about['version']),
      openapi: textIn(about['openapi']),
    },
    left_out: (about['left_out'] ?? []) as { tool: string; reason: string }[],
    left_out_total: Number(about['left_out_total'] ?? 0),
    created_at: timestamp(source.created_at),
    updated_at: timestamp(source.updated_at),
  };
}

async function detail({ remote, skillsOf }: OpenapiImportsDeps, source: SourceRow) {
  const versions = await remote.versionsOf(source);
  return { ...summary(source), skills: versionViews(source, versions, skillsOf) };
}
