/** The ledger after all kinds of calls, compared with conversations, jobs and the provider. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  answering,
  inTurn,
  type Reply,
  type ScriptedRequest,
} from '../support/scripted-provider.ts';
import {
  newThinker,
  runTask,
  startThinkers,
  sumOf,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

/** What an owner has used, or what conversations or jobs say that was used. */
interface Sums {
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly total: number | null;
  readonly unreported: number;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes
type Body = any;

/** Of the days of an owner. */
function sumsOfDays(days: readonly Body[]): Sums {
  const sum = (field: string) => sumOf(days.map((day) => day[field]));
  return {
    prompt: sum('prompt_tokens'),
    completion: sum('completion_tokens'),
    total: sum('total_tokens'),
    unreported: days.reduce((all, day) => all + day.unreported_calls, 0),
  };
}

/** Of the messages of conversations. */
async function sumsOfConversations(thinker: Thinker, ids: readonly string[]): Promise<Sums> {
  const parts: Body[] = [];
  for (const id of ids) parts.push(...(await thinker.tokens(id)).breakdown);
  const prompt = sumOf(parts.map((part) => part.prompt_tokens));
  const completion = sumOf(parts.map((part) => part.completion_tokens));
  const isUnreported = (part: Body) =>
    part.prompt_tokens === null || part.completion_tokens === null;
  return {
    prompt,
    completion,
    total: sumOf(
      parts.flatMap((part: Body): (number | null)[] => [
        part.prompt_tokens,
        part.completion_tokens,
      ]),
    ),
    unreported: parts.filter(isUnreported).length,
  };
}

const daysOf = async (thinker: Thinker, path: string) => (await thinker.get(path)).body.days;

/** Tools, silence about usage, limits, broken streams: by the order in which requests arrive. */
function allSorts(request: ScriptedRequest): Reply {
  if (JSON.stringify(request.messages).includes('hold')) return held;
  if (request.toolResults.length > 0) return { text: 'Two words.' };
  switch (request.index % 8) {
    case 1:
      return { toolCalls: [{ name: toolNamed('text/v1.0/word-count'), input: { text: 'a b' } }] };
    case 2:
      return { fault: { status: 429, headers: { 'retry-after-ms': '1' } } };
    case 3:
      return { text: 'An answer that breaks off before it is whole', fault: 'cut' };
    case 4:
      return { text: 'The cost of this is unknown', usage: null };
    case 5:
      return { text: 'This makes no sense after a while', fault: 'malformed' };
    case 6:
      return { fault: { status: 400 } };
    default:
      return { text: 'Yes.' };
  }
}

const never = new Promise(() => {});
const held: Reply = { text: 'a long story that never ends', hold: { after: 2, until: never } };

test('agents, keys, scheduled jobs and the administrator see the sums of conversations and jobs', async () => {
  const { platform, provider } = world;
  const thinker = await newThinker(platform, { skills: ['text/*'] });
  const fields = { organization_id: thinker.organization, client_name: 'another', scopes: ['*'] };
  const { body: other } = await platform.admin('POST', '/admin/api-keys', fields);
  await thinker.post('/api/agents', {
    id: 'claude',
    skills: ['text/*'],
    model: 'anthropic/test',
  });
  const scheduled = (
    await thinker.post('/api/scheduled-jobs', {
      agent_id: 'claude',
      skill_category: 'agent',
      skill_name: 'run-task',
      cron_expression: '0 0 29 2 *',
      input: { task: 'regularly' },
    })
  ).body.id as string;
  const keys = [
    { id: thinker.keyId, key: thinker.key },
    { id: other.id as string, key: other.plaintext_key as string },
  ];
  const agents = ['thinker', 'claude'];
  provider.script(allSorts);
  const earlier = provider.requests.length;

  const begun: { id: string; agent: string; keyId: string; schedule: string | null }[] = [];
  const begin = async (i: number, task: string) => {
    const agent = agents[i % 2] as string;
    const key = keys[Math.floor(i / 2) % 2] as (typeof keys)[number];
    const { body } = await platform.request('POST', `/api/${runTask}`, {
      key: key.key,
      body: { task },
      headers: { 'x-agent-id': agent },
    });
    begun.push({ id: body.job_id, agent, keyId: key.id, schedule: null });
    return body.job_id as string;
  };
  for (let i = 0; i < 32; i++) await begin(i, `Task ${i}`);
  for (let i = 0; i < 3; i++) {
    const { body } = await thinker.post(`/api/scheduled-jobs/${scheduled}/run`);
    begun.push({ id: body.job_id, agent: 'claude', keyId: thinker.keyId, schedule: scheduled });
  }
  for (let i = 0; i < 4; i++) {
    const id = await begin(i, 'hold');
    await (await thinker.follow(id)).event(({ event }) => event === 'token', 'it has begun');
    await thinker.post(`/api/jobs/${id}/cancel`);
  }
  const jobs = await Promise.all(
    begun.map(async (job) => ({
      ...job,
      ...(await thinker.jobIn(job.id, 'completed', 'failed', 'cancelled')).body,
    })),
  );
  expect(new Set(jobs.map(({ status }) => status))).toEqual(
    new Set(['completed', 'failed', 'cancelled']),
  );

  const sumsWhere = (is: (job: (typeof jobs)[number]) => boolean) =>
    sumsOfConversations(
      thinker,
      jobs.filter(is).map((job) => job.conversation_id),
    );
  for (const agent of agents) {
    const sums = sumsOfDays(await daysOf(thinker, `/api/agents/${agent}/usage`));
    expect(sums).toEqual(await sumsWhere((job) => job.agent === agent));
  }
  for (const { id } of keys) {
    const { body } = await platform.admin('GET', `/admin/api-keys/${id}/usage`);
    expect(sumsOfDays(body.days)).toEqual(await sumsWhere((job) => job.keyId === id));
    expect(body.today.reserved).toBe(0);
  }
  const ofSchedule = await daysOf(thinker, `/api/scheduled-jobs/${scheduled}/usage`);
  expect(sumsOfDays(ofSchedule)).toEqual(await sumsWhere((job) => job.schedule !== null));

  const all = await sumsWhere(() => true);
  for (const kind of ['agent', 'api_key']) {
    const query = `organization_id=${thinker.organization}&owner_kind=${kind}`;
    const { data } = (await platform.admin('GET', `/admin/usage?${query}`)).body;
    expect(data).toHaveLength(2);
    expect(sumsOfDays(data)).toEqual(all);
    const calls = data.reduce((sum: number, { calls }: Body) => sum + calls, 0);
    expect(calls).toBe(provider.requests.length - earlier);
  }
  const ofJobs = jobs.map(({ token_stats }) => token_stats.total_tokens);
  expect(sumOf(ofJobs)).toBe(all.total);

  // And what the provider has said. Messages say what a prompt costs before they break off.
  const said = provider.requests.slice(earlier).map((request) => {
    const { protocol, endedBy, cost } = request;
    const { usage, fault } = allSorts(request);
    if (cost === null || usage === null) return 0;
    const isWhole = endedBy === 'answered' && fault === undefined;
    if (isWhole) return cost.prompt + cost.completion;
    return protocol === 'messages' ? cost.prompt : 0;
  });
  expect(all.total).toBe(said.reduce((sum, tokens) => sum + tokens, 0));
});

test('unreported tokens are null and counted as unreported, and budgets are charged the estimate', async () => {
  const thinker = await newThinker(world.platform);
  const path = '/api/agents/thinker';
  world.provider.script(answering('Who knows?', { usage: null }));
  await thinker.put(`${path}/budget`, { tokens_per_day: 1_000_000 });

  const job = await thinker.task('Say something');

  const { today, month, days } = (await thinker.get(`${path}/usage`)).body;
  expect(job.token_stats).toMatchObject({
    prompt_tokens: null,
    completion_tokens: null,
    total_tokens: null,
  });
  expect(days).toMatchObject([
    {
      day: expect.any(String),
      prompt_tokens: null,
      completion_tokens: null,
      total_tokens: null,
      estimated_tokens: today.used,
      calls: 1,
      unreported_calls: 1,
    },
  ]);
  // About as many as the provider counted.
  const { cost } = world.provider.requests.at(-1) as { cost: { prompt: number } };
  expect(today.used).toBeGreaterThan(cost.prompt * 0.6);
  expect(today).toMatchObject({
    used: today.used,
    reserved: 0,
    limit: 1_000_000,
    left: 1_000_000 - today.used,
  });
  expect(month.used).toBe(today.used);

  await thinker.put(`${path}/budget`, { tokens_per_day: today.used });
  expect(await thinker.task('Once more')).toMatchObject({ error: { code: 'budget_exceeded' } });
});

test('a call that is under way is shown as reserved, and as a call', async () => {
  const thinker = await newThinker(world.platform);
  const until = Promise.withResolvers<void>();
  world.provider.script(
    inTurn({ text: 'Yes.', usage: { prompt: 9, completion: 1 }, until: until.promise }),
  );
  const usage = async () => (await thinker.get('/api/agents/thinker/usage')).body;

  const id = await thinker.begin('Is it?');
  const during = await waitFor(
    async () => {
      const { today, days } = await usage();
      return today.reserved > 0 ? { today, days } : null;
    },
    { describe: 'the call is under way' },
  );
  until.resolve();
  await thinker.jobIn(id, 'completed');

  expect(during).toMatchObject({
    today: { used: 0, limit: null, left: null },
    days: [{ total_tokens: 0, calls: 1, unreported_calls: 0 }],
  });
  expect(await usage()).toMatchObject({
    today: { used: 10, reserved: 0 },
    days: [{ prompt_tokens: 9, completion_tokens: 1, total_tokens: 10, calls: 1 }],
  });
});

test('a provider that reports absurd numbers corrupts neither the ledger nor later calls', async () => {
  const thinker = await newThinker(world.platform);
  const absurd = [-5, 1.5, 1e300, Number.MAX_SAFE_INTEGER, 1e15];
  for (const tokens of [...absurd, ...absurd, ...absurd]) {
    world.provider.script(answering('Yes.', { usage: { prompt: tokens, completion: tokens } }));
    const job = await thinker.task('Is it?');
    expect(job.status, String(tokens)).toBe('completed');
    expect((await thinker.tokens(job.conversation_id)).breakdown).toHaveLength(2);
  }
  world.provider.script(answering('Yes.', { usage: { prompt: 9, completion: 1 } }));

  expect(await thinker.task('Is it?')).toMatchObject({ token_stats: { total_tokens: 10 } });
  expect((await thinker.get('/api/agents/thinker/usage')).body).toMatchObject({
    today: { reserved: 0 },
    days: [{ calls: 16 }],
  });
  const { organization } = thinker;
  const path = `/admin/usage?organization_id=${organization}`;
  // Its agent, its key, its user and its skill.
  expect((await world.platform.admin('GET', path)).body.total).toBe(4);
});

test('a call of a deleted agent charges no newer agent with the same id', async () => {
  const thinker = await newThinker(world.platform);
  const answer = Promise.withResolvers<void>();
  const before = world.provider.requests.length;
  world.provider.script(() => ({
    text: 'Late.',
    usage: { prompt: 50, completion: 5 },
    until: answer.promise,
  }));
  const id = await thinker.begin('Think');
  await waitFor(async () => world.provider.requests.length > before || null, {
    describe: 'the call of the model',
  });
  expect((await thinker.delete('/api/agents/thinker')).status).toBe(204);
  expect((await thinker.post('/api/agents', { id: 'thinker' })).status).toBe(201);

  answer.resolve();
  await thinker.jobIn(id, 'completed', 'failed');

  const { body } = await thinker.get('/api/agents/thinker/usage');
  expect(body.today).toMatchObject({ used: 0, reserved: 0 });
  // The key has paid.
  const { body: ofKey } = await world.platform.admin(
    'GET',
    `/admin/api-keys/${thinker.keyId}/usage`,
  );
  expect(ofKey.today).toMatchObject({ used: 55, reserved: 0 });
});
