/** The verbs behind `/admin/mcp-servers`: servers of the Model Context Protocol, as operators see them. */

import { isObject, type Json } from '../../../kernel/json.ts';
import type { Accounts } from '../accounts/accounts.ts';
import { type ReadVersion, removeSource, replaceSource } from '../remote-skills.ts';
import { openSource } from '../secrets.ts';
import { Sources, sourceSummary, textIn } from '../source-verbs.ts';
import type { SourceRow } from '../sources.store.ts';
import type { RemoteSkills } from '../state.ts';
import {
  type McpRules,
  type McpSecrets,
  type McpServerFields,
  type McpSettings,
  type OAuthSettings,
  sourceFieldsOf,
} from './settings.ts';

type Summary = ReturnType<typeof summary>;

/** The servers of a platform; `rules` are the operator's. */
export class McpServers extends Sources<Summary> {
  readonly #accounts: Accounts;
  readonly #rules: McpRules;

  constructor(remote: RemoteSkills, accounts: Accounts, rules: McpRules) {
    super(remote, 'mcp');
    this.#accounts = accounts;
    this.#rules = rules;
  }

  summary(source: SourceRow): Summary {
    return summary(source);
  }

  add(name: string, fields: McpServerFields) {
    return this.addNamed(name, sourceFieldsOf(this.#rules, fields));
  }

  async replace(name: string, fields: McpServerFields) {
    const source = await this.rowOf(name);
    const given = [fields.headers, fields.env, fields.oauth];
    const keeps = given.some((one) => Object.values(one ?? {}).includes(null));
    const secrets: McpSecrets = keeps ? openSource(this.remote.cipher, source).secrets : {};
    const stored = { settings: JSON.parse(source.settings) as McpSettings, secrets };
    const changed = sourceFieldsOf(this.#rules, fields, stored);
    return this.detail(await replaceSource(this.remote, source, changed));
  }

  async remove(name: string): Promise<void> {
    const source = await this.rowOf(name);
    await this.#accounts.forget(source);
    await removeSource(this.remote, source);
  }

  activate(name: string, version: ReadVersion) {
    return this.decide('active', name, [version]);
  }

  reject(name: string, version: ReadVersion) {
    return this.decide('rejected', name, [version]);
  }
}

/** A server without its skills. */
function summary(source: SourceRow) {
  const settings = JSON.parse(source.settings) as McpSettings;
  const about = JSON.parse(source.about) as Json;
  const server = isObject(about['server']) ? about['server'] : {};
  return {
    ...sourceSummary(source, about),
    url: settings.url,
    command: settings.command,
    args: [...settings.args],
    headers: [...settings.header_names],
    env: [...settings.env_names],
    oauth: oauthView(settings.oauth ?? null),
    timeout_ms: settings.timeout_ms,
    idempotent_tools: [...settings.idempotent_tools],
    trust_annotations: settings.trust_annotations,
    status: source.status,
    server: {
      name: textIn(server['name']),
      version: textIn(server['version']),
      protocol: textIn(about['protocol']),
      instructions: textIn(about['instructions']),
    },
  };
}

function oauthView(oauth: OAuthSettings | null) {
  if (oauth === null) return null;
  const { grant = 'client_credentials', client_id = null, issuer = null, scope } = oauth;
  const has_client_secret = oauth.has_client_secret ?? true;
  return { grant, client_id, has_client_secret, issuer, ...(scope !== undefined && { scope }) };
}
