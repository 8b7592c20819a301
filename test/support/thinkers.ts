/** A platform whose agents think with a scripted provider, and what tests ask of it. */
import { join } from 'node:path';
import { type Follower, follow } from './event-stream.ts';
import { type Platform, type PlatformOptions, startPlatform } from './platform.ts';
import { type ScriptedProvider, startScriptedProvider } from './scripted-provider.ts';
import { stagedSkills } from './staged.ts';
import { newTenant, type Tenant } from './tenant.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from './tls-receiver.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

const root = join(import.meta.dirname, '../..');
/** Those that think, and those on a stage. */
export const thinkersSkills: readonly string[] = [
  ...['agent', 'text'].map((category) => join(root, 'src/core/skills/catalog', category)),
  ...stagedSkills,
  join(root, 'test/fixtures/skills/thinking'),
];

/** The keys that the platform has for its providers; they must not leak. */
export const providerKeys = { openai: 'sk-test-openai-0123', anthropic: 'sk-test-anthropic-4567' };

export const runTask = 'agent/v1.0/run-task';
export const asks = 'thinking/v1.0/asks';

export interface Thinkers {
  readonly provider: ScriptedProvider;
  readonly platform: Platform;
  stop(): Promise<void>;
}

/** Agents think with `openai/test` unless they, or `environment`, say otherwise. */
export async function startThinkers(options: PlatformOptions = {}): Promise<Thinkers> {
  const provider = await startScriptedProvider();
  const platform = await startPlatform({
    skillsDirs: thinkersSkills,
    ...options,
    environment: { ...environmentOf(provider), ...options.environment },
  });
  return {
    provider,
    platform,
    async stop() {
      await platform.stop();
      await provider.close();
    },
  };
}

export interface WatchedThinkers extends Thinkers {
  readonly receiver: TlsReceiver;
}

/** The same, with a receiver to which the platform may deliver events. */
export async function startWatchedThinkers(): Promise<WatchedThinkers> {
  const receiver = await startTlsReceiver();
  const world = await startThinkers({
    environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
    parts: { webhookEgress: { ca: receiverAuthority } },
  });
  return {
    ...world,
    receiver,
    async stop() {
      await world.stop();
      await receiver.close();
    },
  };
}

/** What a platform has to be told to think with the provider. */
export function environmentOf(provider: ScriptedProvider): Record<string, string> {
  return {
    OPENAI_API_KEY: providerKeys.openai,
    OPENAI_BASE_URL: provider.openaiBaseUrl,
    ANTHROPIC_API_KEY: providerKeys.anthropic,
    ANTHROPIC_BASE_URL: provider.anthropicBaseUrl,
    DEFAULT_MODEL: 'openai/test',
  };
}

/** An agent of an organization of its own. */
export interface Thinker extends Tenant {
  readonly agentId: string;
  /** The header that names the agent. */
  readonly named: Record<string, string>;
  /** Runs `agent/run-task` to its end; the job. */
  task(task: string, more?: object, headers?: Record<string, string>): Promise<Body>;
  /** Accepts a run of `agent/run-task`; its job's id. */
  begin(task: string, headers?: Record<string, string>): Promise<string>;
  /** Runs `thinking/asks` to its end; the job. */
  asking(requests: readonly unknown[], more?: object): Promise<Body>;
  steps(jobId: string): Promise<Body[]>;
  messages(conversationId: string): Promise<Body[]>;
  tokens(conversationId: string): Promise<Body>;
  memories(): Promise<Body[]>;
  /** Follows the stream of a job, from an event on when its id is given. */
  follow(jobId: string, lastEventId?: string): Promise<Follower>;
}

/**
 * The same, whose organization reaches the providers with credentials of its own: what other tests have made of a
 * provider does not hold up its calls.
 */
export async function newOwnThinker(
  { platform, provider }: Thinkers,
  fields?: Parameters<typeof newThinker>[1],
): Promise<Thinker> {
  const thinker = await newThinker(platform, fields);
  const path = `/admin/organizations/${thinker.organization}/credentials`;
  for (const [name, base_url] of [
    ['openai', provider.openaiBaseUrl],
    ['anthropic', provider.anthropicBaseUrl],
  ]) {
    const { status } = await platform.admin('PUT', `${path}/${name}`, { base_url });
    if (status !== 200) throw new Error(`no credentials: ${status}`);
  }
  return thinker;
}

/**
 * `fields` are the agent's, `key` those of the key that acts for it. A key with every scope creates the agent, because
 * one with fewer may create only agents that call nothing beyond its own scopes.
 */
export async function newThinker(
  platform: Platform,
  fields: {
    skills?: string[];
    approvals?: string[];
    tool_rules?: object[];
    guards?: object[];
    agents?: string[];
    model?: string | null;
    instructions?: string;
    variables?: Record<string, string>;
    model_settings?: object;
    fallback_models?: string[];
    memory?: string;
    recall?: { limit: number };
    profile?: { max_bytes: number };
    keep_prompts?: boolean;
    memory_formation?: object;
  } = {},
  key: Record<string, unknown> = {},
): Promise<Thinker> {
  const tenant = await newTenant(platform, key);
  const creator = await newTenant(platform, { organization_id: tenant.organization });
  const created = await creator.post('/api/agents', { id: 'thinker', ...fields });
  if (created.status !== 201) throw new Error(`No agent: ${created.text}`);
  const named = { 'x-agent-id': 'thinker' };
  const body = async (path: string) => (await tenant.get(path)).body;
  return {
    ...tenant,
    agentId: 'thinker',
    named,
    task: async (task, more = {}, headers = {}) =>
      (await tenant.run(runTask, { task, ...more }, { ...named, ...headers })).body,
    begin: (task, headers = {}) => tenant.start(runTask, { task }, { ...named, ...headers }),
    asking: async (requests, more = {}) =>
      (await tenant.run(asks, { requests, ...more }, named)).body,
    steps: async (jobId) => (await body(`/api/jobs/${jobId}/steps?limit=200`)).data,
    messages: (id) => body(`/api/conversations/${id}/messages?limit=200`),
    tokens: (id) => body(`/api/conversations/${id}/token-usage`),
    memories: async () => (await body('/api/agents/thinker/memories?limit=200')).data,
    follow: (jobId, lastEventId) =>
      follow(`${platform.url}/api/jobs/${jobId}/events`, {
        'x-api-key': tenant.key,
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      }),
  };
}

/** Resolves when a call of the job was refused its tokens for now, and waits for them. */
export async function waitsForBudget(thinker: Thinker, jobId: string): Promise<void> {
  const follower = await thinker.follow(jobId);
  await follower.event(
    ({ event, data }) => event === 'log' && data.message.startsWith('Waiting for a budget.'),
    `a call of ${jobId} waits for a budget`,
  );
  follower.leave();
}

/** What a model calls a skill that is named `category/version/name`. */
export function toolNamed(skill: string): string {
  const [category, version = '', name] = skill.split('/');
  return `${category}__${name}__${version.replace('.', '_')}`;
}

/** The sum of what is known; null where nothing is, though something was asked. */
export function sumOf(parts: readonly (number | null)[]): number | null {
  const known = parts.filter((part) => part !== null);
  const sum = known.reduce((a, b) => a + b, 0);
  return sum === 0 && known.length < parts.length ? null : sum;
}
