/** Budgets of runs: refused, cut and counted calls, for each owner and period. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { timestamp } from '../../src/kernel/clock.ts';
import { expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordEvents } from '../support/outbox.ts';
import type { Answer } from '../support/platform.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import {
  asks,
  newThinker as newUnrecorded,
  startThinkers,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

/** A thinker whose events are recorded. */
const newThinker: typeof newUnrecorded = async (...given) => {
  const thinker = await newUnrecorded(...given);
  await recordEvents(world.platform.database, thinker.organization);
  return thinker;
};

const clock = manualClock('2026-11-20T12:00:00.000Z');
let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({ clock });
});
afterAll(() => world.stop());

/** Whatever is asked costs 60 + 40 tokens. */
const costing100 = answering('Yes.', { usage: { prompt: 60, completion: 40 } });
const requests = [{ prompt: 'Is it?', maxOutputTokens: 40 }];

/** Something that has a budget, and a run that falls under it. */
interface Subject {
  readonly thinker: Thinker;
  /** As sentences name it. */
  readonly name: string;
  /** Its usage or budget. */
  send(method: string, what: 'usage' | 'budget', body?: unknown): Promise<Answer>;
  /** Runs `thinking/asks` to its end; the job. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  ask(): Promise<any>;
}

async function anAgent(): Promise<Subject> {
  const thinker = await newThinker(world.platform);
  return {
    thinker,
    name: 'agent thinker',
    send: (method, what, body) => thinker.send(method, `/api/agents/thinker/${what}`, { body }),
    ask: () => thinker.asking(requests),
  };
}

async function anApiKey(): Promise<Subject> {
  const thinker = await newThinker(world.platform);
  return {
    thinker,
    name: `API key ${thinker.keyId}`,
    send: (method, what, body) =>
      world.platform.admin(method, `/admin/api-keys/${thinker.keyId}/${what}`, body),
    ask: () => thinker.asking(requests),
  };
}

async function aScheduledJob(): Promise<Subject> {
  const thinker = await newThinker(world.platform);
  const { body, text } = await thinker.post('/api/scheduled-jobs', {
    agent_id: 'thinker',
    skill_category: 'thinking',
    skill_name: 'asks',
    cron_expression: '0 0 29 2 *',
    input: { requests },
  });
  if (body?.id === undefined) throw new Error(text);
  const path = `/api/scheduled-jobs/${body.id}`;
  return {
    thinker,
    name: `scheduled job ${body.id}`,
    send: (method, what, given) => thinker.send(method, `${path}/${what}`, { body: given }),
    async ask() {
      const run = await thinker.post(`${path}/run`);
      return (await thinker.jobIn(run.body.job_id, 'completed', 'failed')).body;
    },
  };
}

const subjects = [
  ['an agent', anAgent],
  ['an API key', anApiKey],
  ['a scheduled job', aScheduledJob],
] as const;
const periods = [
  ['day', 'tokens_per_day', 10],
  ['month', 'tokens_per_month', 7],
] as const;

async function eventsOf(jobId: string) {
  const rows = await world.platform.database.read.kysely
    .selectFrom('events')
    .select(['type', 'data'])
    .orderBy('seq')
    .execute();
  return rows
    .map(({ type, data }) => ({ type, data: JSON.parse(data) }))
    .filter(({ data }) => data.job_id === jobId);
}

/** How many requests the provider got meanwhile. */
async function requestsDuring(work: () => Promise<unknown>): Promise<number> {
  const before = world.provider.requests.length;
  await work();
  return world.provider.requests.length - before;
}

const outputOf = (body: Record<string, unknown> | undefined) =>
  body?.['max_tokens'] ?? body?.['max_completion_tokens'];

describe.each(subjects)('the budget of %s', (_, make) => {
  test.each(periods)(
    'for a %s that is used up fails the job before anything is spent',
    async (_period, field, length) => {
      const { thinker, name, send, ask } = await make();
      world.provider.script(costing100);
      await send('PUT', 'budget', { [field]: 100 });
      expect(await ask()).toMatchObject({ status: 'completed' });

      let job: { job_id: string } & Record<string, unknown>;
      const sent = await requestsDuring(async () => {
        job = await ask();
      });

      expect(sent).toBe(0);
      const period = timestamp(clock.now()).slice(0, length);
      const error = {
        code: 'budget_exceeded',
        message: `The ${name} has used 100 of its 100 tokens for ${period} (UTC)`,
      };
      expect(job!).toMatchObject({ status: 'failed', attempt: 1, error });
      expect(await thinker.steps(job!.job_id)).toEqual([]);
      expect(await eventsOf(job!.job_id)).toEqual(
        expect.arrayContaining([
          { type: 'skill.failed', data: expect.objectContaining({ attempts: 1, error }) },
          { type: 'agent.error', data: { ...error, job_id: job!.job_id } },
        ]),
      );
    },
  );

  test.each(periods)('for a %s starts again in the next one', async (_period, field) => {
    const { send, ask } = await make();
    world.provider.script(costing100);
    const now = new Date(clock.now());
    clock.jumpTo(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 15, 23, 59, 59, 999));
    await send('PUT', 'budget', { [field]: 100 });
    await ask();
    expect(await ask()).toMatchObject({ error: { code: 'budget_exceeded' } });

    clock.advance(1);
    const nextDay = await ask();
    clock.jumpTo(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2, 1));
    const nextMonth = await ask();

    expect(nextDay.status).toBe(field === 'tokens_per_day' ? 'completed' : 'failed');
    expect(nextMonth.status).toBe('completed');
  });

  test('that is raised or deleted lets the next job pass', async () => {
    const { send, ask } = await make();
    world.provider.script(costing100);
    await send('PUT', 'budget', { tokens_per_day: 100 });
    await ask();
    expect(await ask()).toMatchObject({ status: 'failed' });

    await send('PUT', 'budget', { tokens_per_day: 200 });
    const raised = await ask();
    const full = await ask();
    await send('DELETE', 'budget');
    const deleted = await ask();

    expect([raised.status, full.status, deleted.status]).toEqual([
      'completed',
      'failed',
      'completed',
    ]);
    expect((await send('GET', 'usage')).body.today).toMatchObject({
      used: 300,
      reserved: 0,
      limit: null,
      left: null,
    });
  });

  test('limits the answer to the tokens left, and never requests more', async () => {
    const { thinker, send, ask } = await make();
    const until = Promise.withResolvers<void>();
    world.provider.script(async () => {
      await until.promise;
      return { text: 'Yes.', usage: { prompt: 5, completion: 5 } };
    });
    const held = async () => (await send('GET', 'usage')).body.today.reserved as number;
    // Later calls are estimated by what was reported for this one.
    const before = ask();
    until.resolve();
    await before;
    const next = Promise.withResolvers<void>();
    world.provider.script(async () => {
      await next.promise;
      return { text: 'Yes.', usage: { prompt: 5, completion: 5 } };
    });
    const at = world.provider.requests.length;
    const first = ask();
    await world.provider.received(at + 1);
    const whole = await held();
    next.resolve();
    await first;
    expect(outputOf(world.provider.requests[at]?.body)).toBe(40);

    // 20 are used; of the answer's 40 tokens the last 20 are missing.
    await send('PUT', 'budget', { tokens_per_day: 20 + whole - 20 });
    const job = await ask();

    expect(job).toMatchObject({ status: 'completed' });
    expect(outputOf(world.provider.requests[at + 1]?.body)).toBe(20);
    expect(await thinker.steps(job.job_id)).toHaveLength(1);
    const { today } = (await send('GET', 'usage')).body;
    expect(today).toMatchObject({ used: 30, reserved: 0, left: whole - 30 });
  });

  test('that cut an answer short is used up: the text and tokens are recorded, the job fails', async () => {
    const { thinker, send, ask } = await make();
    world.provider.script(costing100);
    await ask();
    const at = world.provider.requests.length;
    await send('PUT', 'budget', { tokens_per_day: 180 });
    world.provider.script(({ body }) => ({
      text: 'One, two,',
      finish: 'length',
      usage: { prompt: 60, completion: Number(outputOf(body)) },
    }));

    const job = await ask();
    expect(job).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'budget_exceeded' } });
    expect(job.error.message).toMatch(
      /^The answer was cut at \d+ tokens, which is what a budget had left$/,
    );
    expect(world.provider.requests.length).toBe(at + 1);
    const messages = await thinker.messages(job.conversation_id);
    expect(messages.at(-1)).toMatchObject({ role: 'assistant', content: 'One, two,' });
    expect((await send('GET', 'usage')).body.today).toMatchObject({ reserved: 0 });
  });

  test('with fewer tokens left than a short answer needs refuses the call, and names the tokens left', async () => {
    const { name, send, ask } = await make();
    world.provider.script(answering('Yes.', { usage: { prompt: 5, completion: 5 } }));
    await ask();
    await send('PUT', 'budget', { tokens_per_day: 18 });

    let job: unknown;
    expect(
      await requestsDuring(async () => {
        job = await ask();
      }),
    ).toBe(0);

    const day = timestamp(clock.now()).slice(0, 10);
    expect(job).toMatchObject({
      status: 'failed',
      error: {
        code: 'budget_exceeded',
        message: expect.stringMatching(
          `^The ${name} has used 10 of its 18 tokens for ${day} .UTC.: 8 tokens are left of 18, and the call needs about \\d+$`,
        ),
      },
    });
  });
});

describe.each(['openai/test', 'anthropic/test'])('answers of %s that break off', (model) => {
  test('are charged by what was seen of them, and not by what was held back', async () => {
    const thinker = await newThinker(world.platform, { model });
    await thinker.put('/api/agents/thinker/budget', { tokens_per_day: 400 });
    const at = world.provider.requests.length;
    // Far longer than what comes of them.
    const usage = { prompt: 10, completion: 200 };
    world.provider.script(({ body }) => ({
      text: 'x'.repeat(800),
      fault: 'cut',
      usage: { ...usage, completion: Math.min(200, body.max_tokens) },
    }));

    const requests = [{ prompt: 'Is it?', maxOutputTokens: 200 }];
    const jobId = await thinker.start(asks, { requests }, thinker.named);
    await world.provider.received(at + 2);
    // An attempt asks twice at most where it may be charged; the next one is due a moment later.
    const ended = async () => {
      clock.advance(1_000);
      const { body } = await thinker.get(`/api/jobs/${jobId}`);
      return body.status === 'failed' ? body : null;
    };
    const job = await waitFor(ended, { describe: 'the turn is not asked for again' });

    expect(job).toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(world.provider.requests.length - at).toBe(3);
    const { today, days } = (await thinker.get('/api/agents/thinker/usage')).body;
    // Of each answer one or two pieces of eight characters had arrived.
    const isMessages = model.startsWith('anthropic');
    const seen = isMessages ? 3 : 6;
    const prompt = isMessages ? 0 : days[0].estimated_tokens / 3 - seen;
    expect(days).toMatchObject([
      { estimated_tokens: 3 * (prompt + seen), calls: 3, unreported_calls: 3 },
    ]);
    expect(prompt).toBeLessThan(150);
    expect(today).toMatchObject({ used: 3 * ((prompt || 10) + seen), reserved: 0 });
  });
});

describe('a run of several turns', () => {
  const counting = { name: toolNamed('text/v1.0/word-count'), input: { text: 'one two' } };

  test('that exhausts its budget midway keeps and counts its steps, and is not retried', async () => {
    const thinker = await newThinker(world.platform, { skills: ['text/*'] });
    const until = Promise.withResolvers<void>();
    world.provider.script(
      inTurn(
        { toolCalls: [counting], usage: { prompt: 600, completion: 40 }, until: until.promise },
        { text: 'Two.', usage: { prompt: 31, completion: 2 } },
      ),
    );
    const at = world.provider.requests.length;
    const jobId = await thinker.begin('Count');
    await world.provider.received(at + 1);
    // Less than is used already: what is under way is finished, what comes after it is not begun.
    await thinker.put('/api/agents/thinker/budget', { tokens_per_day: 640 });
    until.resolve();
    const { body: job } = await thinker.jobIn(jobId, 'failed', 'completed');

    expect(world.provider.requests.length - at).toBe(1);
    const stats = { prompt_tokens: 600, completion_tokens: 40, total_tokens: 640 };
    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'budget_exceeded' },
      token_stats: stats,
    });
    expect(await thinker.steps(jobId)).toMatchObject([
      { kind: 'model', status: 'completed', prompt_tokens: 600, completion_tokens: 40 },
      { kind: 'tool', status: 'completed' },
    ]);
    expect((await thinker.messages(job.conversation_id)).map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool'],
    ]);
    expect(await thinker.tokens(job.conversation_id)).toMatchObject(stats);
    const usage = (await thinker.get('/api/agents/thinker/usage')).body;
    expect(usage.today).toMatchObject({ used: 640, reserved: 0, limit: 640, left: 0 });
    expect((await eventsOf(jobId)).map(({ type }) => type)).toContain('agent.error');
  });

  test('whose skill catches the error continues without the model', async () => {
    const { thinker, send } = await anAgent();
    world.provider.script(costing100);
    await send('PUT', 'budget', { tokens_per_day: 100 });

    const job = await thinker.asking([
      { ...requests[0], prompt: 'One?' },
      { ...requests[0], prompt: 'Two?', caught: true },
    ]);

    expect(job).toMatchObject({
      status: 'completed',
      output: [{ text: 'Yes.' }, { code: 'budget_exceeded', retryable: false }],
    });
  });
});

describe('the budget of an agent', () => {
  test('is its own: the agent of the same id in another organization has another one', async () => {
    const [one, other] = [await anAgent(), await anAgent()];
    world.provider.script(costing100);
    await one.send('PUT', 'budget', { tokens_per_day: 100 });
    await one.ask();
    expect(await one.ask()).toMatchObject({ error: { code: 'budget_exceeded' } });

    expect(await other.ask()).toMatchObject({ status: 'completed' });

    expect((await other.send('GET', 'usage')).body.today).toMatchObject({ used: 100, limit: null });
    expect((await other.send('GET', 'budget')).body.tokens_per_day).toBeNull();
  });

  test('that another organization has is 404', async () => {
    const { thinker } = await anAgent();
    await thinker.post('/api/agents', { id: 'only-here' });
    const stranger = await newThinker(world.platform);

    for (const what of ['usage', 'budget']) {
      const path = `/api/agents/only-here/${what}`;
      expect((await thinker.get(path)).status).toBe(200);
      expectRefusal(await stranger.get(path), 404, 'not_found');
    }
    const put = await stranger.put('/api/agents/only-here/budget', { tokens_per_day: 1 });
    expectRefusal(put, 404, 'not_found');
    expectRefusal(await stranger.delete('/api/agents/only-here/budget'), 404, 'not_found');
  });

  test('counts for whichever key acts for it, and that of a key for whichever agent', async () => {
    const { thinker, send } = await anAgent();
    const { platform } = world;
    const second = await newThinkerKey(thinker);
    world.provider.script(costing100);
    await thinker.post('/api/agents', { id: 'another' });
    await send('PUT', 'budget', { tokens_per_day: 100 });
    const asking = (key: string, agent: string) =>
      platform.run(key, asks, { requests }, { 'x-agent-id': agent });

    await asking(thinker.key, 'thinker');
    const byOther = (await asking(second.key, 'thinker')).body;
    await platform.admin('PUT', `/admin/api-keys/${second.id}/budget`, { tokens_per_month: 100 });
    const another = (await asking(second.key, 'another')).body;
    const anotherAgain = (await asking(second.key, 'another')).body;
    const byFirst = (await asking(thinker.key, 'another')).body;

    expect(byOther.error.message).toContain('The agent thinker has used 100');
    expect(another.status).toBe('completed');
    expect(anotherAgain.error.message).toContain(`The API key ${second.id} has used 100`);
    expect(byFirst.status).toBe('completed');
  });
});

/** Another key of the same organization. */
async function newThinkerKey({ organization }: Thinker) {
  const { body } = await world.platform.admin('POST', '/admin/api-keys', {
    client_name: 'another',
    scopes: ['*'],
    rate_limit: 1_000_000,
    organization_id: organization,
  });
  return { id: body.id as string, key: body.plaintext_key as string };
}
