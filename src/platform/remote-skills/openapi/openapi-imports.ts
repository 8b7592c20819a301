/** The verbs behind `/admin/openapi-imports`: OpenAPI documents, as operators see them. */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { PlatformError } from '../../../kernel/errors.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Json } from '../../../kernel/json.ts';
import { RemoteFault } from '../remote-kind.ts';
import {
  type ReadVersion,
  removeSource,
  replaceSource,
  type SourceFields,
} from '../remote-skills.ts';
import { openSource } from '../secrets.ts';
import { Sources, sourceSummary, textIn } from '../source-verbs.ts';
import { findDocument, type SourceRow } from '../sources.store.ts';
import type { RemoteSkills } from '../state.ts';
import type { OpenapiKind } from './openapi-kind.ts';
import {
  credentialsOriginOf,
  type OpenapiFields,
  type OpenapiSecrets,
  type OpenapiSettings,
  sourceFieldsOf,
} from './settings.ts';

/** For a document that is fetched and read. */
const previewMs = 30_000;

type Summary = ReturnType<typeof summary>;

/** A version in quarantine, with the digest that was read. */
export interface Activation {
  readonly skill_name: string;
  readonly version: string;
  readonly digest: string;
}

const readVersion = ({ skill_name, version, digest }: Activation): ReadVersion => ({
  skillName: skill_name,
  version,
  digest,
});

/** The imports of a platform. */
export class OpenapiImports extends Sources<Summary> {
  readonly #allowed: AllowList;
  readonly #kind: OpenapiKind;

  constructor(remote: RemoteSkills, allowed: AllowList, kind: OpenapiKind) {
    super(remote, 'api');
    this.#allowed = allowed;
    this.#kind = kind;
  }

  summary(source: SourceRow): Summary {
    return summary(source);
  }

  add(name: string, fields: OpenapiFields) {
    return this.addNamed(name, sourceFieldsOf(this.#allowed, fields));
  }

  async replace(name: string, fields: OpenapiFields) {
    const source = await this.rowOf(name);
    const changed = this.#changedFields(source, fields);
    return this.detail(await replaceSource(this.remote, source, changed));
  }

  /** The operations of a document; nothing is stored. `name` is an import whose stored values are used for null. */
  async preview(name: string | null, fields: OpenapiFields) {
    const stored = name === null ? null : await this.rowOf(name);
    const { settings, secrets, document } =
      stored === null ? sourceFieldsOf(this.#allowed, fields) : this.#changedFields(stored, fields);
    const { read } = this.remote.database;
    const kept =
      document === undefined && stored !== null ? await findDocument(read, stored.id) : null;
    const source = {
      id: `preview-${newId()}`,
      name: name ?? 'the document',
      settings,
      secrets,
      document: document ?? kept,
      about: {},
      organizations: null,
    };
    try {
      return await this.#kind.operationsOf(source, AbortSignal.timeout(previewMs));
    } catch (error) {
      if (!(error instanceof RemoteFault)) throw error;
      throw new PlatformError('conflict', error.message, { cause: error });
    }
  }

  async remove(name: string): Promise<void> {
    await removeSource(this.remote, await this.rowOf(name));
  }

  activate(name: string, versions: readonly Activation[]) {
    return this.decide('active', name, versions.map(readVersion));
  }

  reject(name: string, versions: readonly Activation[]) {
    return this.decide('rejected', name, versions.map(readVersion));
  }

  #changedFields(source: SourceRow, fields: OpenapiFields): SourceFields {
    const settings = settingsOf(source);
    const keepsSecret = Object.values(fields.auth ?? {}).includes(null);
    const secrets: OpenapiSecrets = keepsSecret
      ? openSource(this.remote.cipher, source).secrets
      : {};
    const origin = credentialsOriginOf(settings, JSON.parse(source.about) as Json);
    const stored = { hasDocument: settings.url === null, secrets, auth: settings.auth, origin };
    return sourceFieldsOf(this.#allowed, fields, stored);
  }
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
