/**
 * Which key may do what: every operation of `/openapi.json`, by every kind of key (docs/decisions/api-keys.md). A new
 * operation needs a row in `operations`.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { durableSkills, play } from '../support/durable-platform.ts';
import { expectRefusal } from '../support/expectations.ts';
import { askMcp } from '../support/mcp.ts';
import { startMcpServer } from '../support/mcp-server.ts';
import { adminSecret, type Platform } from '../support/platform.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { acting, stagedSkills, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

/** What the operations of a test are about, in an organization of its own. */
interface Fixture {
  readonly platform: Platform;
  readonly owner: Tenant;
  /** Plaintexts of keys with these scopes, made once. */
  key(scopes: readonly string[]): Promise<string>;
}

/** The path of a request, and its body. */
type Sent = readonly [path: string, body?: unknown];

/** The status of an answer, and the code of a refusal. */
interface Result {
  readonly status: number;
  readonly code: string | null;
}

interface Operation {
  /** All that a key needs. */
  readonly scopes: readonly string[];
  /** Scopes that are enough, too. */
  readonly orElse?: readonly string[];
  /** What it needs besides with `API_KEY_PERMISSIONS=strict`. */
  readonly strict?: readonly string[];
  /** Whether the path names a resource of one organization, which is 404 for keys of another. */
  readonly isOwned: boolean;
  /** What a key with the scopes gets; the one success of the operation's documentation when left out. */
  readonly result?: Result;
  /** Makes what the request is about, and is called again for each request that changes it. */
  send(on: Fixture): Promise<Sent> | Sent;
}

const any = { skill_category: 'staged', skill_name: 'any' };
const url = 'https://receiver.example/hook';
const hook = { agent_id: 'default', url, events: ['skill.completed'] };
const approvalHook = { ...hook, events: ['skill.completed', 'approval.requested'] };
let minutes = 0;
/** A scheduled job that differs from every earlier one. */
function cron() {
  minutes += 1;
  const time = `${minutes % 60} ${Math.floor(minutes / 60) % 24}`;
  return { agent_id: 'default', ...any, cron_expression: `${time} 1 1 *` };
}
const task = { agent: { instructions: 'Be brief.' }, input: { task: 'Hello?' } };

async function made({ owner }: Fixture, path: string, fields: object): Promise<string> {
  const { status, body, text } = await owner.post(path, fields);
  if (status !== 201) throw new Error(text);
  return body.id;
}

/** An agent that may call a skill of the category `staged`. */
const agent = (on: Fixture) =>
  made(on, '/api/agents', { skills: ['staged/v1.0/any'], approvals: [] });
const schedule = (on: Fixture) => made(on, '/api/scheduled-jobs', cron());
const trigger = (on: Fixture) =>
  made(on, '/api/agent-triggers', { agent_id: 'default', name: 'Calls', ...any });
const webhook = (on: Fixture) => made(on, '/api/agent-webhooks', hook);
const memory = (on: Fixture) => made(on, '/api/agents/default/memories', { content: 'A fact.' });
const file = (on: Fixture) => made(on, '/api/files', { text: 'A fact.' });
const job = async ({ owner }: Fixture) => (await owner.run('staged/v1.0/any', {})).body;
async function failedJob({ owner }: Fixture): Promise<string> {
  const fail = { message: 'no luck', retryable: false };
  return (await owner.run('staged/v1.0/play', acting({ fail }))).body.job_id;
}
async function delivery(on: Fixture): Promise<string> {
  const id = await webhook(on);
  const { body } = await on.owner.post(`/api/agent-webhooks/${id}/test`);
  return `/api/agent-webhooks/${id}/deliveries/${body.id}`;
}
async function skillId({ owner }: Fixture): Promise<string> {
  return (await owner.get('/api/skills/staged/v1.0/vault')).body.id;
}

/** A job that begins in an hour. */
async function laterJob({ owner }: Fixture): Promise<string> {
  const headers = { 'x-delay-seconds': '3600' };
  return (await owner.post('/api/staged/v1.0/any', {}, headers)).body.job_id;
}
const items = [{ skill: 'staged/v1.0/any', input: {} }];
async function batch({ owner }: Fixture): Promise<string> {
  return (await owner.post('/api/batches', { items })).body.id;
}

/** A run that waits for the answer to its question. */
async function waitingJob({ owner }: Fixture): Promise<string> {
  const id = await owner.start(play, { log: '/dev/null', acts: [{ approve: 'ship' }] });
  await owner.jobIn(id, 'waiting');
  return id;
}
async function approval(on: Fixture): Promise<string> {
  const id = await waitingJob(on);
  return (await on.owner.get(`/api/approvals?job_id=${id}`)).body.data[0].id;
}

/** A server outside, whose category is mcp-tickets; its path among the accounts. */
async function account({ platform: on }: Fixture): Promise<string> {
  const known = await on.admin('GET', '/admin/mcp-servers/tickets');
  if (known.status === 404) {
    const { url } = await startMcpServer();
    const added = await on.admin('POST', '/admin/mcp-servers', { name: 'tickets', url });
    if (added.status !== 201) throw new Error(added.text);
  }
  return '/api/accounts/tickets';
}

type Send = Operation['send'];
type Path = (id: string) => string;

/** An operation on the organization as a whole. */
const onAll = (
  scopes: readonly string[],
  send: Send,
  strict: readonly string[] = [],
): Operation => ({
  ...{ scopes, strict, isOwned: false, send },
});

/** An operation on a resource of the organization. */
const onOne = (
  scopes: readonly string[],
  make: (on: Fixture) => Promise<string>,
  path: Path,
  { body, strict = [] }: { body?: unknown; strict?: readonly string[] } = {},
): Operation => ({
  ...{ scopes, strict, isOwned: true },
  send: async (on) => [path(await make(on)), body],
});

const agents: Path = (id) => `/api/agents/${id}`;
const jobs = (end: string) => (id: string) => `/api/jobs/${id}${end}`;
const ofJob = async (on: Fixture) => (await job(on)).job_id as string;
const ofConversation = async (on: Fixture) => (await job(on)).conversation_id as string;
const conversations = (end: string) => (id: string) => `/api/conversations/${id}${end}`;
const schedules = (end: string) => (id: string) => `/api/scheduled-jobs/${id}${end}`;
const triggers = (end: string) => (id: string) => `/api/agent-triggers/${id}${end}`;
const webhooks = (end: string) => (id: string) => `/api/agent-webhooks/${id}${end}`;
const batches = (end: string) => (id: string) => `/api/batches/${id}${end}`;
const approvals = (end: string) => (id: string) => `/api/approvals/${id}${end}`;
const files = (end: string) => (id: string) => `/api/files/${id}${end}`;
const memories: Path = (id) => `/api/agents/default/memories/${id}`;
const profiles = '/api/agents/default/profiles/ada';
const itself: Path = (path) => path;

const ofRegistry = { strict: ['registry'] };
const ofFiles = { strict: ['files'] };
const ofMemories = { strict: ['memories'] };
const ofConversations = { strict: ['conversations'] };
const ofSchedules = { strict: ['schedules'] };
const ofWebhooks = { strict: ['webhooks'] };
const dollar = { usd_per_day: 1 };
const accepted: Result = { status: 202, code: null };
/** A person connects an account, in the console. */
const onlySessions: Result = { status: 409, code: 'conflict' };

const operations: Readonly<Record<string, Operation>> = {
  approveApproval: onOne(['approvals'], approval, approvals('/approve'), { body: {} }),
  beginAuthorization: {
    ...onAll(['mcp-tickets'], async (on) => [`${await account(on)}/authorize`]),
    result: onlySessions,
  },
  cancelBatch: onOne([], batch, batches('/cancel')),
  cancelJob: { ...onOne([], waitingJob, jobs('/cancel')), result: { status: 200, code: null } },
  cancelManyJobs: onAll([], () => ['/api/jobs/cancel', { skill_category: 'staged' }]),
  changeSkillConfig: onAll(
    ['staged', 'vault'],
    async (on) => [`/api/skills/${await skillId(on)}/config`, { SECRET: 'opens the vault' }],
    ['registry'],
  ),
  clearSkillConfig: onAll(
    ['staged', 'vault'],
    async (on) => [`/api/skills/${await skillId(on)}/config`],
    ['registry'],
  ),
  completeAuthorization: {
    ...onAll(['mcp-tickets'], async (on) => [
      `${await account(on)}/complete`,
      { state: 'x', code: 'x' },
    ]),
    result: onlySessions,
  },
  createAgent: onAll(['staged'], () => ['/api/agents', { skills: ['staged/v1.0/any'] }]),
  createAgentTrigger: onAll(['staged'], () => [
    '/api/agent-triggers',
    { agent_id: 'default', name: 'Calls', ...any },
  ]),
  createAgentWebhook: onAll(['approvals'], () => ['/api/agent-webhooks', approvalHook], [
    'webhooks',
  ]),
  // Each item is judged by itself: test/http/batches.test.ts.
  createBatch: onAll([], () => ['/api/batches', { items }]),
  // That of a user needs the scope memories or user-data: test/http/memories.test.ts.
  createMemory: onAll([], () => ['/api/agents/default/memories', { content: 'A fact.' }], [
    'memories',
  ]),
  createScheduledJob: onAll(['staged'], () => ['/api/scheduled-jobs', cron()], ['schedules']),
  deleteAgent: onOne(['staged'], agent, agents),
  deleteAgentBudget: onOne(['budgets'], agent, (id) => `${agents(id)}/budget`),
  deleteAgentTrigger: onOne([], trigger, triggers('')),
  deleteAgentWebhook: onOne([], webhook, webhooks(''), ofWebhooks),
  deleteFile: onOne([], file, files(''), ofFiles),
  deleteMemory: onOne([], memory, memories, ofMemories),
  deleteProfile: {
    ...onAll(['memories'], () => [profiles], ['memories']),
    orElse: ['user-data'],
  },
  deleteScheduledJob: onOne([], schedule, schedules(''), ofSchedules),
  deleteScheduledJobBudget: onOne(['budgets'], schedule, schedules('/budget'), ofSchedules),
  // The organization has none.
  disconnectAccount: {
    ...onAll(['mcp-tickets'], async (on) => [await account(on)]),
    result: { status: 404, code: 'not_found' },
  },
  eraseUserData: onAll(['user-data'], () => ['/api/users/ada/data']),
  executeSkill: { ...onAll(['staged'], () => ['/api/staged/v1.0/any', {}]), result: accepted },
  exportUserData: onAll(['user-data'], () => ['/api/users/ada/data']),
  getAccount: onAll(['mcp-tickets'], async (on) => [await account(on)]),
  getAgent: onOne([], agent, agents),
  getAgentBudget: onOne([], agent, (id) => `${agents(id)}/budget`),
  forkConversation: onOne([], ofConversation, conversations('/fork'), {
    body: {},
    ...ofConversations,
  }),
  getAgentQueue: onOne([], agent, (id) => `${agents(id)}/queue`),
  getAgentTrigger: onOne([], trigger, triggers('')),
  getAgentUsage: onOne([], agent, (id) => `${agents(id)}/usage`),
  getAgentVersion: onOne([], agent, (id) => `${agents(id)}/versions/1`),
  getAgentWebhook: onOne([], webhook, webhooks(''), ofWebhooks),
  getAgentWebhookDelivery: onOne([], delivery, itself, ofWebhooks),
  getApproval: onOne(['approvals'], approval, approvals('')),
  getBatch: onOne([], batch, batches('')),
  getConversation: onOne([], ofConversation, conversations(''), ofConversations),
  getFile: onOne([], file, files(''), ofFiles),
  // A part of it is 206.
  getFileContent: {
    ...onOne([], file, files('/content'), ofFiles),
    result: { status: 200, code: null },
  },
  getJob: onOne([], ofJob, jobs('')),
  getMemory: onOne([], memory, memories, ofMemories),
  getProfile: {
    ...onAll(['memories'], () => [profiles], ['memories']),
    orElse: ['user-data'],
  },
  getScheduledJob: onOne([], schedule, schedules(''), ofSchedules),
  getScheduledJobBudget: onOne([], schedule, schedules('/budget'), ofSchedules),
  getScheduledJobUsage: onOne([], schedule, schedules('/usage'), ofSchedules),
  getSkill: onAll([], () => ['/api/skills/staged/v1.0/any'], ['registry']),
  getSkillConfig: onAll(
    [],
    async (on) => [`/api/skills/${await skillId(on)}/config`],
    ofRegistry.strict,
  ),
  getSkillUsages: onAll([], () => ['/api/skills/staged/v1.0/any/usages'], [
    'registry',
    'schedules',
  ]),
  getStepPrompt: {
    ...onOne(['memories'], ofJob, jobs('/steps/1/prompt'), {
      strict: ['conversations', 'memories'],
    }),
    orElse: ['user-data'],
    // Its job has called no model; test/http/prompts.test.ts reads some.
    result: { status: 404, code: 'not_found' },
  },
  getStatistics: onAll([], () => ['/api/statistics']),
  getTokenUsage: onOne([], ofConversation, conversations('/token-usage'), ofConversations),
  limitAgent: onOne(['staged'], agent, (id) => `${agents(id)}/queue`, {
    body: { max_concurrency: 5 },
  }),
  listAccounts: onAll([], () => ['/api/accounts']),
  listAgentTriggerCalls: onOne([], trigger, triggers('/calls')),
  listAgentTriggers: onAll([], () => ['/api/agent-triggers']),
  listAgentVersions: onOne([], agent, (id) => `${agents(id)}/versions`),
  listAgentWebhookDeliveries: onOne([], webhook, webhooks('/deliveries'), ofWebhooks),
  listAgentWebhooks: onAll([], () => ['/api/agent-webhooks'], ['webhooks']),
  listAgents: onAll([], () => ['/api/agents']),
  listAgentsOfUser: {
    ...onAll(['memories'], () => ['/api/users/ada/agents']),
    orElse: ['user-data'],
  },
  getQueue: onAll([], () => ['/api/queue']),
  listApprovals: onAll(['approvals'], () => ['/api/approvals']),
  listBatches: onAll([], () => ['/api/batches']),
  listConversations: onAll([], () => ['/api/conversations'], ['conversations']),
  listJobDeliveries: onOne([], ofJob, jobs('/deliveries'), ofWebhooks),
  listJobSteps: onOne([], ofJob, jobs('/steps')),
  listFiles: onAll([], () => ['/api/files'], ['files']),
  listJobs: onAll([], () => ['/api/jobs']),
  listMemories: onAll([], () => ['/api/agents/default/memories'], ['memories']),
  listMessages: onOne([], ofConversation, conversations('/messages'), ofConversations),
  listScheduledJobs: onAll([], () => ['/api/scheduled-jobs'], ['schedules']),
  listScheduledRuns: onOne([], schedule, schedules('/runs'), ofSchedules),
  listSkills: onAll([], () => ['/api/skills'], ['registry']),
  listenForWebhookEvents: onAll(
    ['approvals'],
    () => ['/api/agent-webhooks/listen?events=approval.requested'],
    ['webhooks'],
  ),
  pauseAgentQueue: onOne([], agent, (id) => `${agents(id)}/queue/pause`),
  previewCronExpression: onAll(
    [],
    () => ['/api/scheduled-jobs/preview?cron_expression=0%200%20*%20*%20*'],
    ['schedules'],
  ),
  putProfile: {
    ...onAll(['memories'], () => [profiles, { content: 'Likes tea.' }], ['memories']),
    orElse: ['user-data'],
  },
  redeliverAgentWebhookDelivery: onOne([], delivery, (path) => `${path}/redeliver`, ofWebhooks),
  rejectApproval: onOne(['approvals'], approval, approvals('/reject'), { body: {} }),
  restoreAgentVersion: onOne(
    ['staged'],
    async (on) => {
      const id = await agent(on);
      await on.owner.put(agents(id), { instructions: 'Be brief.' });
      return id;
    },
    (id) => `${agents(id)}/versions/1/restore`,
  ),
  resumeAgentQueue: onOne([], agent, (id) => `${agents(id)}/queue/resume`),
  retryBatch: onOne([], batch, batches('/retry')),
  retryJob: onOne(['staged'], failedJob, jobs('/retry')),
  // It leaves out what the key may not run: test/http/jobs-many.test.ts.
  retryManyJobs: onAll([], () => ['/api/jobs/retry', { skill_category: 'staged' }]),
  runScheduledJob: onOne(['staged'], schedule, schedules('/run'), ofSchedules),
  sendRunEvent: onAll(['events'], () => ['/api/events', { event: 'order.paid' }]),
  setAgentBudget: onOne(['budgets'], agent, (id) => `${agents(id)}/budget`, { body: dollar }),
  setScheduledJobBudget: onOne(['budgets'], schedule, schedules('/budget'), {
    body: dollar,
    ...ofSchedules,
  }),
  streamJobEvents: onOne([], ofJob, jobs('/events?follow=false')),
  testAgentWebhook: onOne([], webhook, webhooks('/test'), ofWebhooks),
  giveTask: {
    ...onOne(['agent'], agent, (id) => `${agents(id)}/tasks`, { body: { task: 'Hello?' } }),
    result: accepted,
  },
  tryAgent: {
    ...onOne(['agent', 'staged'], agent, (id) => `${agents(id)}/trials`, { body: task }),
    result: accepted,
  },
  updateAgent: onOne(['staged'], agent, agents, { body: { instructions: 'Be brief.' } }),
  updateAgentTrigger: onOne(['staged'], trigger, triggers(''), { body: { input: { a: 1 } } }),
  updateAgentWebhook: onOne(
    ['approvals'],
    (on) => made(on, '/api/agent-webhooks', approvalHook),
    webhooks(''),
    { body: { url: 'https://other.example/hook' }, ...ofWebhooks },
  ),
  updateJob: onOne(['staged'], laterJob, jobs(''), { body: { run_at: null } }),
  uploadFile: onAll([], () => ['/api/files', { text: 'A fact.' }], ['files']),
  updateMemory: onOne([], memory, memories, { body: { content: 'Another.' }, ...ofMemories }),
  updateScheduledJob: onOne(['staged'], schedule, schedules(''), {
    body: { input: { a: 1 } },
    ...ofSchedules,
  }),
};

/** Operations without a key: `/admin` needs the admin secret, a call of a trigger its token, the others nothing. */
const withoutKey = {
  nothing: ['getDocs', 'getHealth', 'getMetrics', 'getOpenApi'],
  token: ['callAgentTrigger'],
};

/** Each scope that some operation needs, alone; a category of other skills; and all. */
const kinds: readonly (readonly string[])[] = [
  ...['other', 'staged', 'vault', 'agent', 'mcp-tickets'].map((scope) => [scope]),
  ...['approvals', 'budgets', 'events', 'memories', 'user-data'].map((scope) => [scope]),
  ...['registry', 'schedules', 'webhooks', 'conversations'].map((scope) => [scope]),
  ...['agents', 'triggers', 'keys', 'audit', 'operate'].map((scope) => [scope]),
  ['agent', 'staged'],
  ['staged', 'vault'],
  ['*'],
];

interface Described {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  /** The statuses of its successes. */
  readonly successes: readonly number[];
}

let platform: Platform;
let strict: Platform;
let storage: S3Server;
let described: Map<string, Described>;

beforeAll(async () => {
  const catalog = join(import.meta.dirname, '../../src/core/skills/catalog/agent');
  const options = { skillsDirs: [...stagedSkills, durableSkills, catalog] };
  storage = await startS3();
  const environment = { SKILLS_ALLOW_CIDRS: '127.0.0.0/8', ...storage.environment };
  platform = await startStaged({ ...options, environment });
  strict = await startStaged({
    ...options,
    environment: { ...environment, API_KEY_PERMISSIONS: 'strict' },
  });
  const { paths } = (await platform.request('GET', '/openapi.json')).body as {
    paths: Record<string, Record<string, { operationId: string; responses: object }>>;
  };
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, responses }]) => ({
      operationId,
      method: method.toUpperCase(),
      path,
      successes: Object.keys(responses)
        .filter((status) => status.startsWith('2'))
        .map(Number),
    })),
  );
  described = new Map(all.map((one) => [one.operationId, one]));
});
afterAll(async () => {
  await platform.stop();
  await strict.stop();
  await storage.close();
});

async function fixture(on: Platform): Promise<Fixture> {
  const owner = await newTenant(on);
  const { organization: organization_id } = owner;
  return { platform: on, owner, key: (scopes) => on.key({ organization_id, scopes }) };
}

/** The answer to a request of an operation with a key. A stream is not read. */
async function answerOf(
  on: Platform,
  operationId: string,
  [path, body]: Sent,
  key: string,
): Promise<Result> {
  const given = new AbortController();
  const { method, path: documented } = described.get(operationId) as Described;
  expect(path.split('?')[0]).toMatch(new RegExp(`^${documented.replace(/\{\w+\}/g, '[^/]+')}$`));
  const headers = { 'x-api-key': key, ...(body !== undefined && json) };
  const init = { method, headers, signal: given.signal };
  const sent = body === undefined ? init : { ...init, body: JSON.stringify(body) };
  const response = await fetch(on.url + path, sent);
  const isRefused = response.status >= 400;
  const code = isRefused ? ((await response.json()) as { error: string }).error : null;
  given.abort();
  return { status: response.status, code };
}
const json = { 'content-type': 'application/json' };

const has = (scopes: readonly string[], needed: readonly string[]) =>
  scopes.includes('*') || needed.every((scope) => scopes.includes(scope));

const refused: Result = { status: 403, code: 'insufficient_scope' };

/** What a key that may gets of an operation. */
function resultOf(operationId: string, { result }: Operation): Result {
  if (result !== undefined) return result;
  const { successes } = described.get(operationId) as Described;
  const [status, ...others] = successes;
  if (status === undefined || others.length > 0) throw new Error(`${operationId} needs a result`);
  return { status, code: null };
}

test('the table has each operation of /openapi.json, and no other', () => {
  const named = [...described.values()].filter(({ path }) => !path.startsWith('/admin/'));
  const rows = [...Object.keys(operations), ...Object.values(withoutKey).flat()];
  expect(rows.sort()).toEqual(named.map(({ operationId }) => operationId).sort());
});

describe.each(Object.entries(operations))('%s', (operationId, operation) => {
  const { scopes, orElse, strict: area, isOwned, send } = operation;

  test(`takes exactly the keys with ${scopes.join(' and ') || 'any scope'}`, async () => {
    const on = await fixture(platform);
    const sent = await send(on);
    const isReading = described.get(operationId)?.method === 'GET';

    if (isOwned) {
      const foreign = (await newTenant(platform)).key;
      const answer = await answerOf(platform, operationId, sent, foreign);
      expect(answer).toEqual({ status: 404, code: 'not_found' });
    }
    const answers = new Map<string, Result>();
    const expected = new Map<string, Result>();
    for (const kind of kinds) {
      const mayPass = has(kind, scopes) || (orElse !== undefined && has(kind, orElse));
      const own = mayPass && !isReading ? await send(on) : sent;
      answers.set(kind.join(), await answerOf(platform, operationId, own, await on.key(kind)));
      expected.set(kind.join(), mayPass ? resultOf(operationId, operation) : refused);
    }
    expect(Object.fromEntries(answers)).toEqual(Object.fromEntries(expected));
  });

  test(`needs ${[...(area ?? [])].join(' and ') || 'nothing else'} with strict permissions`, async () => {
    const on = await fixture(strict);
    const sent = await send(on);
    const without = scopes.length === 0 ? ['other'] : scopes;
    const needed = [...new Set([...scopes, ...(area ?? [])])];

    for (const kind of [without, area ?? []]) {
      if (kind.length === 0 || has(kind, needed)) continue;
      expect(await answerOf(strict, operationId, sent, await on.key(kind))).toEqual(refused);
    }
    const enough = await on.key(needed.length === 0 ? ['other'] : needed);
    expect(await answerOf(strict, operationId, sent, enough)).toEqual(
      resultOf(operationId, operation),
    );
  });
});

describe('with strict permissions, a run that continues a conversation', () => {
  const runTask = '/api/agent/v1.0/run-task';
  async function continuing() {
    const on = await fixture(strict);
    const { body } = await on.owner.run('staged/v1.0/any', {});
    const keys = { organization_id: on.owner.organization };
    return {
      owner: on.owner,
      headers: { 'x-conversation-id': body.conversation_id as string },
      narrow: await newTenant(strict, { ...keys, scopes: ['agent'] }),
      wide: await newTenant(strict, { ...keys, scopes: ['agent', 'conversations'] }),
    };
  }

  test('needs the scope conversations, of which it could repeat the messages', async () => {
    const { narrow, wide, headers } = await continuing();
    const unknown = { 'x-conversation-id': newId() };

    for (const one of [headers, unknown]) {
      expectRefusal(await narrow.post(runTask, { task: 'x' }, one), 403, 'insufficient_scope');
    }
    expectRefusal(await wide.post(runTask, { task: 'x' }, unknown), 404, 'not_found');
    expect((await narrow.post(runTask, { task: 'x' })).status).toBe(202);
    expect((await wide.post(runTask, { task: 'x' }, headers)).status).toBe(202);
  });

  test('needs it to be retried, too', async () => {
    const { owner, narrow, wide, headers } = await continuing();
    // The platform has no model.
    const { body: job } = await owner.post(runTask, { task: 'x' }, headers);
    await owner.jobIn(job.job_id, 'failed');

    const retry = (by: Tenant) => by.post(`/api/jobs/${job.job_id}/retry`);
    expectRefusal(await retry(narrow), 403, 'insufficient_scope');
    expect((await retry(wide)).status).toBe(202);

    // A missing scope is told before any state.
    await owner.put('/api/agents/default', { status: 'paused' });
    expectRefusal(await retry(narrow), 403, 'insufficient_scope');
    expectRefusal(await retry(wide), 422, 'agent_paused');
  });
});

test('operations of /admin take the admin secret and no API key', async () => {
  const key = await platform.key();
  for (const { operationId, path } of described.values()) {
    if (!path.startsWith('/admin/')) continue;
    const filled = path.replace(/\{\w+\}/g, 'x');
    const { status } = await answerOf(platform, operationId, [filled], key);
    expect([operationId, status]).toEqual([operationId, 401]);
  }
  const { status } = await platform.request('GET', '/admin/api-keys', {
    headers: { 'x-admin-secret': adminSecret },
  });
  expect(status).toBe(200);
});

test('with strict permissions, what gives a task files by their ids needs the scope files', async () => {
  const { owner } = await fixture(strict);
  const keys = { organization_id: owner.organization };
  const narrow = await newTenant(strict, { ...keys, scopes: ['agent', 'schedules'] });
  const wide = await newTenant(strict, { ...keys, scopes: ['agent', 'schedules', 'files'] });
  const uploaded = await fetch(`${strict.url}/api/files?name=a.txt`, {
    method: 'POST',
    headers: { 'x-api-key': owner.key, 'content-type': 'text/plain' },
    body: 'a secret',
  });
  const { id } = (await uploaded.json()) as { id: string };
  const input = { task: 'Quote it', files: [id] };
  const skill = { skill_category: 'agent', skill_name: 'run-task', agent_id: 'default' };
  const scheduled = { ...skill, cron_expression: '0 0 1 1 *' };
  const run = (by: Tenant, task: object) => by.post('/api/agents/default/tasks', task);
  const unknown = { ...input, files: [newId()] };

  for (const task of [input, unknown])
    expectRefusal(await run(narrow, task), 403, 'insufficient_scope');
  expectRefusal(await run(wide, unknown), 400, 'validation_error');
  expect((await run(narrow, { task: 'x', files: ['https://example.com/a.png'] })).status).toBe(202);
  const { status, body: job } = await run(wide, input);
  expect(status).toBe(202);
  // The platform has no model.
  await owner.jobIn(job.job_id, 'failed');
  const retry = (by: Tenant) => by.post(`/api/jobs/${job.job_id}/retry`);
  expectRefusal(await retry(narrow), 403, 'insufficient_scope');
  expect((await retry(wide)).status).toBe(202);

  const items = [{ skill: 'agent/v1.0/run-task', input }];
  const { body: batch } = await narrow.post('/api/batches', { items });
  expect(batch.items).toMatchObject([{ error: 'insufficient_scope' }]);
  const schedule = (by: Tenant, of: object) =>
    by.post('/api/scheduled-jobs', { ...scheduled, input: of });
  expectRefusal(await schedule(narrow, input), 403, 'insufficient_scope');
  const made = await schedule(wide, input);
  expect(made.status).toBe(201);
  const path = `/api/scheduled-jobs/${made.body.id}`;
  expectRefusal(await narrow.post(`${path}/run`), 403, 'insufficient_scope');
  expectRefusal(await narrow.put(path, { input }), 403, 'insufficient_scope');
  // Its runs would be those of the key that has changed it.
  const other = await owner.post('/api/agents', { id: 'other', name: 'Ada' });
  expect(other.status).toBe(201);
  expectRefusal(await narrow.put(path, { agent_id: 'other' }), 403, 'insufficient_scope');
  expect((await wide.put(path, { agent_id: 'other' })).status).toBe(200);
  expect((await narrow.put(path, { input: { task: 'x' } })).status).toBe(200);
  expect((await narrow.put(path, { agent_id: 'default' })).status).toBe(200);
});

test('with strict permissions, a result of MCP has bytes of files that its job has not made for keys with the scope files', async () => {
  const { owner } = await fixture(strict);
  const keys = { organization_id: owner.organization };
  const headers = { 'content-type': 'text/plain' };
  const { body: file } = await owner.send('POST', '/api/files', { body: 'a secret', headers });
  const params = { name: 'staged__any', arguments: { type: 'file', id: file.id } };
  const ask = async (scopes: string[]) => {
    const key = await strict.key({ ...keys, scopes });
    return (await askMcp(strict, key, 'tools/call', params)).result.content;
  };

  expect(await ask(['staged'])).toMatchObject([{ type: 'text' }, { type: 'resource_link' }]);
  expect(await ask(['staged', 'files'])).toMatchObject([
    { type: 'text' },
    { type: 'resource', resource: { text: 'a secret' } },
  ]);
});
