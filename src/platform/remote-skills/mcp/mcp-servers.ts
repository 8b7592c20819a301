/** The verbs behind `/admin/mcp-servers`: servers of the Model Context Protocol, as operators see them. */

import type { Skill } from '../../../core/skills/registry.ts';
import { bind } from '../../../kernel/bind.ts';
import { isObject, type Json } from '../../../kernel/json.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { RemoteSkills } from '../remote-skills.ts';
import { createSourceVerbs, type ReadVersion, sourceSummary, textIn } from '../source-verbs.ts';
import type { SourceRow } from '../sources.store.ts';
import {
  type McpRules,
  type McpSecrets,
  type McpServerFields,
  type McpSettings,
  type OAuthSettings,
  sourceFieldsOf,
} from './settings.ts';

const kind = 'mcp';

export type McpServers = ReturnType<typeof createMcpServers>;

export interface McpServersDeps {
  readonly remote: Omit<RemoteSkills, 'run' | 'whyWithdrawn' | 'scheduleRefresh' | 'close'>;
  readonly accounts: Pick<Accounts, 'forget'>;
  readonly rules: McpRules;
  /** The skills of a category, active or not. */
  skillsOf(category: string): readonly Skill[];
}

export function createMcpServers(deps: McpServersDeps) {
  const verbs = createSourceVerbs({ ...deps, kind, summary });
  const { decide, require, find, findVersion, list, refresh } = verbs;
  return {
    ...{ require, find, findVersion, list, refresh },
    ...bind({ ...deps, verbs }, { add, replace, remove }),
    activate: (name: string, version: ReadVersion) => decide('activate', name, [version]),
    reject: (name: string, version: ReadVersion) => decide('reject', name, [version]),
  };
}

interface McpServersState extends McpServersDeps {
  readonly verbs: Pick<ReturnType<typeof createSourceVerbs<Summary>>, 'detail' | 'rowOf'>;
}

type Summary = ReturnType<typeof summary>;

async function add(
  { remote, rules, verbs }: McpServersState,
  name: string,
  fields: McpServerFields,
) {
  return verbs.detail(await remote.add(kind, name, sourceFieldsOf(rules, fields)));
}

async function replace(state: McpServersState, name: string, fields: McpServerFields) {
  const { remote, rules, verbs } = state;
  const source = await verbs.rowOf(name);
  const given = [fields.headers, fields.env, fields.oauth];
  const keeps = given.some((one) => Object.values(one ?? {}).includes(null));
  const secrets: McpSecrets = keeps ? remote.secretsOf(source) : {};
  const stored = { settings: JSON.parse(source.settings) as McpSettings, secrets };
  return verbs.detail(await remote.replace(source, sourceFieldsOf(rules, fields, stored)));
}

async function remove({ remote, accounts, verbs }: McpServersState, name: string): Promise<void> {
  const source = await verbs.rowOf(name);
  await accounts.forget(source);
  await remote.remove(source);
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
