/** The verbs behind `/admin/mcp-servers`: servers of the Model Context Protocol, as operators see them. */
import type { PageAsked } from '../../database/page-bytes.ts';
import { bind } from '../../kernel/bind.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { isObject, type Json } from '../../kernel/json.ts';
import type { Skill } from '../../skills/registry.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { RemoteSkills } from '../remote-skills.ts';
import type { SourceRow } from '../sources.store.ts';
import { categoryOf } from '../state.ts';
import { countsByState, pinnedVersionView, versionViews } from '../version-views.ts';
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
  const read = { require, find, findVersion, list };
  return bind(deps, { ...read, add, replace, refresh, activate, reject, remove });
}

async function add(deps: McpServersDeps, name: string, fields: McpServerFields) {
  return detail(deps, await deps.remote.add(kind, name, sourceFieldsOf(deps.rules, fields)));
}

/** Throws `404` for an unknown one. */
async function require({ remote }: McpServersDeps, name: string): Promise<void> {
  await remote.find(kind, name);
}

async function find(deps: McpServersDeps, name: string) {
  return detail(deps, await deps.remote.find(kind, name));
}

/** A version with all that is pinned of it. */
async function findVersion(
  { remote, skillsOf }: McpServersDeps,
  name: string,
  asked: { readonly skillName: string; readonly version: string },
) {
  const source = await remote.find(kind, name);
  return pinnedVersionView(source, await remote.versionOf(source, asked), skillsOf);
}

async function list({ remote }: McpServersDeps, page: PageAsked) {
  const { sources, total } = await remote.list(kind, page);
  const data = sources.map(({ source, counts = [] }) => {
    return { ...summary(source), skills: countsByState(counts) };
  });
  return { data, total };
}

async function replace(deps: McpServersDeps, name: string, fields: McpServerFields) {
  const { remote, rules } = deps;
  const source = await remote.find(kind, name);
  const given = [fields.headers, fields.env, fields.oauth];
  const keeps = given.some((one) => Object.values(one ?? {}).includes(null));
  const secrets: McpSecrets = keeps ? remote.secretsOf(source) : {};
  const stored = { settings: JSON.parse(source.settings) as McpSettings, secrets };
  return detail(deps, await remote.replace(source, sourceFieldsOf(rules, fields, stored)));
}

async function refresh(deps: McpServersDeps, name: string) {
  return detail(deps, await deps.remote.refresh((await deps.remote.find(kind, name)).id));
}

interface ReadVersion {
  readonly skillName: string;
  readonly version: string;
  readonly digest: string;
}

async function activate(deps: McpServersDeps, name: string, version: ReadVersion) {
  await deps.remote.activate(await deps.remote.find(kind, name), version);
  return find(deps, name);
}

async function reject(deps: McpServersDeps, name: string, version: ReadVersion) {
  await deps.remote.reject(await deps.remote.find(kind, name), version);
  return find(deps, name);
}

async function remove({ remote, accounts }: McpServersDeps, name: string): Promise<void> {
  const source = await remote.find(kind, name);
  await accounts.forget(source);
  await remote.remove(source);
}

/** A server without its skills. */
function summary(source: SourceRow) {
  const settings = JSON.parse(source.settings) as McpSettings;
  const about = JSON.parse(source.about) as Json;
  const server = isObject(about['server']) ? about['server'] : {};
  const textIn = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    name: source.name,
    category: categoryOf(source),
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
    fault: source.fault,
    fault_at: timestampOrNull(source.fault_at),
    refreshed_at: timestampOrNull(source.refreshed_at),
    server: {
      name: textIn(server['name']),
      version: textIn(server['version']),
      protocol: textIn(about['protocol']),
      instructions: textIn(about['instructions']),
    },
    left_out: (about['left_out'] ?? []) as { tool: string; reason: string }[],
    left_out_total: Number(about['left_out_total'] ?? 0),
    created_at: timestamp(source.created_at),
    updated_at: timestamp(source.updated_at),
  };
}

function oauthView(oauth: OAuthSettings | null) {
  if (oauth === null) return null;
  const { grant = 'client_credentials', client_id = null, issuer = null, scope } = oauth;
  const has_client_secret = oauth.has_client_secret ?? true;
  return { grant, client_id, has_client_secret, issuer, ...(scope !== undefined && { scope }) };
}

async function detail({ remote, skillsOf }: McpServersDeps, source: SourceRow) {
  const versions = await remote.versionsOf(source);
  return { ...summary(source), skills: versionViews(source, versions, skillsOf) };
}
