/**
 * What an agent that thinks owes when it is broken off: a turn that is on record is not paid for
 * again, a tool that has answered is not called again, and the ledger's sums are equal. The provider
 * lives in the test and keeps its own record; the platform is killed, stopped, or loses an executor.
 */
import { writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../src/core/jobs/jobs.store.ts';
import type { AttemptOutcome } from '../../src/core/jobs/states.ts';
import { claimJobs } from '../../src/core/jobs/turns/admission.store.ts';
import { engines } from '../support/databases.ts';
import { deadlocksIn } from '../support/deadlocks.ts';
import type { ReceivedEvent } from '../support/event-stream.ts';
import type { JobsWorld } from '../support/jobs-world.ts';
import { completed, leaseMs } from '../support/jobs-world.ts';
import { randomInteger } from '../support/random.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { expectBalanced } from '../support/thinking-ledger.ts';
import {
  followingPlans,
  inputOf,
  type Plan,
  type PlannedCall,
  taskOf,
} from '../support/thinking-plans.ts';
import {
  runTask,
  type ThinkingProcess,
  thinkingAgents,
  thinkingProcess,
} from '../support/thinking-process.ts';
import { thinkingWorld } from '../support/thinking-world.ts';
import { patient, waitFor } from '../support/wait-for.ts';
import { openWholeJournal } from '../support/whole-journal.ts';
import { anyWriter } from '../support/writers.ts';

const kills = rounds(1, 20);
/** Each of them at every moment at once. */
const heldKills = rounds(1, 20);

/** A promise that never resolves: a request that waits for it ends with its connection. */
const never = new Promise<never>(() => {});

const random = (n: number) => randomInteger(0, n - 1);

let own: ThinkingProcess;
let provider: ScriptedProvider;
async function startOwn(): Promise<void> {
  own = await thinkingProcess();
  provider = own.provider;
}

async function startProvider(): Promise<void> {
  provider = await startScriptedProvider();
}

describe('a process that is killed', () => {
  beforeEach(startOwn);
  afterEach(() => own.close());

  test(`in turns, tools and streams at once (${heldKills}) pays for no turn again and repeats no tool`, {
    timeout: 240_000,
  }, async () => {
    beginChance();
    const holds = holdOnce();
    provider.script(holds.script);
    await own.start();

    for (let round = 0; round < heldKills; round++) {
      const gate = own.path(`gate-${round}`);
      const reached: (() => unknown)[] = [];
      for (const agent of thinkingAgents) {
        const at = `${round}-${agent}`;
        const note = (id: string): PlannedCall => ({ note: `${id}-${at}`, log: own.log });
        const remember = (id: string): PlannedCall => ({ remember: `memory ${id}-${at}` });
        const turns = [[remember('a'), note('turn')], [{ forget: `memory a-${at}` }]];
        const inTurn: Plan = { id: `turn-${at}`, turns };
        const inStream: Plan = { id: `stream-${at}`, turns: [[note('stream'), remember('b')]] };
        const inTool: Plan = {
          id: `tool-${at}`,
          turns: [[note('quick'), { ...note('slow'), gate }, remember('c')], [note('after')]],
        };
        const inner: Plan = {
          id: `inner-${at}`,
          turns: [[note('inner'), remember('d'), { ...note('bad'), fail: 'it is bad' }]],
        };
        const nested: Plan = { id: `nested-${at}`, turns: [[{ think: [inner] }]] };
        for (const { id } of [inTurn, inner]) reached.push(holds.at(id, 'first byte'));
        reached.push(holds.at(inStream.id, 'stream'));
        const [toolJob] = await Promise.all(
          [inTool, inTurn, inStream, nested].map((plan) => own.submit(agent, plan)),
        );
        // The tools beside the slow one have ended, and it has begun.
        reached.push(async () => {
          const { body } = await own.get(`/api/jobs/${toolJob}/steps`);
          const ended = body.data.filter((step: { status: string }) => step.status === 'completed');
          return ended.length === 3 && own.lines().includes(`begin slow-${at} 1`);
        });
      }
      for (const [i, isReached] of reached.entries()) {
        await waitFor(isReached, { describe: `moment ${i} of round ${round}`, deadlineMs: 20_000 });
      }
      await own.kill();
      writeFileSync(gate, '');
      await own.start();
      await own.untilAllEnded();
    }

    expect(await own.inspect()).toEqual({ completed: heldKills * thinkingAgents.length * 4 });
    await own.expectNotesOnce();
  });

  test(`${kills === 1 ? 'once' : `${kills} times`} at random leaves a ledger that balances`, {
    timeout: 240_000,
  }, async () => {
    beginChance();
    provider.script(followingPlans(() => ({ everyMs: random(3), piece: 16 })));
    const plans = randomPlans(own.log);
    await own.start();

    /** One run after the other until the platform is gone, some of them in one conversation. */
    async function load(): Promise<void> {
      const agent = thinkingAgents[random(thinkingAgents.length)] as string;
      let conversation: string | undefined;
      for (;;) {
        const more = conversation && random(2) ? { 'x-conversation-id': conversation } : {};
        const headers = { 'x-agent-id': agent, ...more };
        const { body } = await own.run(runTask, inputOf(plans.next()), headers);
        conversation = body.conversation_id;
      }
    }

    for (let round = 0; round < kills; round++) {
      const gone = Promise.allSettled(Array.from({ length: 8 }, load));
      const target = provider.requests.length + 1 + random(60);
      await waitFor(() => provider.requests.length >= target, {
        describe: 'the provider is asked',
        deadlineMs: 20_000,
        everyMs: 1,
      });
      await own.kill();
      await gone;
      await own.start();
    }
    await own.untilAllEnded();

    expect((await own.inspect())['completed']).toBeGreaterThan(kills);
    await own.expectNotesOnce();
  });
});

describe('SIGTERM while a model or a tool is awaited', () => {
  beforeEach(startOwn);
  afterEach(() => own.close());

  test('hands a run back that does not end within the grace, and it goes on where it was after the next start', async () => {
    const holds = holdOnce();
    provider.script(holds.script);
    await own.start({ SHUTDOWN_GRACE_MS: '200' });
    const gate = own.path('gate');
    const ids: string[] = [];
    const reached: (() => unknown)[] = [];
    for (const agent of thinkingAgents) {
      const quick: PlannedCall = { note: `quick-${agent}`, log: own.log };
      const slow: PlannedCall = { note: `slow-${agent}`, log: own.log, gate };
      const remember: PlannedCall = { remember: `memory-${agent}` };
      reached.push(holds.at(`turn-${agent}`, 'first byte'), holds.at(`stream-${agent}`, 'stream'));
      ids.push(await own.submit(agent, { id: `turn-${agent}`, turns: [[quick, remember]] }));
      ids.push(await own.submit(agent, { id: `stream-${agent}`, turns: [] }));
      ids.push(await own.submit(agent, { id: `tool-${agent}`, turns: [[slow]] }));
      reached.push(() => own.lines().includes(`begin slow-${agent} 1`));
    }
    for (const isReached of reached) await waitFor(isReached, { describe: 'it waits' });

    own.platform.signal('SIGTERM');
    expect(await own.platform.exit).toEqual({ code: 0, signal: null });
    writeFileSync(gate, '');
    await own.start();
    await own.untilAllEnded();

    for (const id of ids) {
      // Handed back at no cost.
      expect((await own.get(`/api/jobs/${id}`)).body).toMatchObject({ attempt: 1 });
    }
    expect(await own.inspect()).toEqual({ completed: 6 });
    for (const agent of thinkingAgents) {
      const begun = own.lines().filter((line) => line.startsWith('begin ') && line.includes(agent));
      expect(begun.sort()).toEqual([
        `begin quick-${agent} 1`,
        `begin slow-${agent} 1`,
        `begin slow-${agent} 1`,
      ]);
    }
  });
});

/** One platform for all of these, which the last of them ends. */
describe('a run that waits for a model or a tool', () => {
  beforeAll(async () => {
    await startOwn();
    await own.start({ SHUTDOWN_GRACE_MS: '20000' });
  });
  afterAll(() => own.close());

  const linesOf = (...notes: string[]) =>
    own.lines().filter((line) => notes.includes(line.split(' ')[1] ?? ''));

  test('whose executor dies by a neighbour: the run goes on, and no tool that has answered runs again', async () => {
    const holds = holdOnce();
    provider.script(holds.script);
    const ids: string[] = [];
    for (const agent of thinkingAgents) {
      const id = `waits-${agent}`;
      const inner: Plan = {
        id: `inner-${agent}`,
        turns: [[{ note: `inner-${agent}`, log: own.log }, { remember: `inner-${agent}` }]],
      };
      const turns: PlannedCall[][] = [[{ note: id, log: own.log, remember: id }]];
      const isHeld = holds.at(id, 'first byte');
      const isInnerHeld = holds.at(inner.id, 'stream');
      ids.push(await own.submit(agent, { id, turns }));
      ids.push(await own.submit(agent, { id: `outer-${agent}`, turns: [[{ think: [inner] }]] }));
      await waitFor(isHeld, { describe: 'the model is asked' });
      await waitFor(isInnerHeld, { describe: 'the model is asked inside a tool' });
    }

    await own.run('ledger/v1.0/die', { once: own.path('died') });
    for (const id of ids) {
      const { body } = await own.jobIn(id, 'completed', 'failed');
      expect(body).toMatchObject({ status: 'completed' });
    }

    const begun = own.lines().filter((line) => line.startsWith('begin '));
    expect(new Set(begun).size).toBe(begun.length);
    expect(begun.length).toBe(thinkingAgents.length * 2);
  });

  test('whose executor dies by a tool of its own: the model is told, and the tools beside it keep their answers', async () => {
    provider.script(followingPlans());
    const turns: PlannedCall[][] = [
      [{ note: 'first', log: own.log }, { remember: 'first' }],
      [{ die: {} }, { remember: 'beside' }],
      [{ note: 'after', log: own.log }],
    ];
    const id = await own.submit('chat', { id: 'deadly', turns });

    const { body } = await own.jobIn(id, 'completed', 'failed');

    expect(body).toMatchObject({ status: 'completed' });
    const { body: steps } = await own.get(`/api/jobs/${id}/steps`);
    const deadly = steps.data.find(({ name }: { name: string }) => name === 'ledger/v1.0/die');
    expect(deadly).toMatchObject({ status: 'failed', error: { code: 'worker_lost' } });
    const begun = linesOf('first', 'after').filter((line) => line.startsWith('begin '));
    expect(begun.map((line) => line.split(' ')[1])).toEqual(['first', 'after']);
  });

  test.each(thinkingAgents)(
    'and is cancelled, of an agent on %s: the call ends within a second, and what is known of it is recorded',
    async (agent) => {
      const holds = holdOnce();
      provider.script(holds.script);
      const before = provider.requests.length;
      const isHeld = holds.at(`long-${agent}`, 'stream');
      const id = await own.submit(agent, {
        id: `long-${agent}`,
        turns: [[{ note: `long-${agent}`, log: own.log }, { remember: `long-${agent}` }]],
      });
      await waitFor(isHeld, { describe: 'the stream waits' });
      const stream = await own.follow(id);
      const hasListeners = ({ event, data }: ReceivedEvent) =>
        event === 'token' && data.text === `long-${agent} is done`;
      await stream.event(hasListeners, 'the platform has heard what there is');

      const began = performance.now();
      await own.post(`/api/jobs/${id}/cancel`);
      const request = await provider.ended(before + 1);
      // A second, and what the requests themselves take on a busy machine.
      expect(performance.now() - began).toBeLessThan(patient(3_000));

      expect(request.endedBy).toBe('aborted');
      const { body } = await own.jobIn(id, 'cancelled', 'completed', 'failed');
      await stream.ended;
      expect(body).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
      const { body: messages } = await own.get(
        `/api/conversations/${body.conversation_id}/messages`,
      );
      expect(messages.at(-1)).toMatchObject({
        role: 'assistant',
        content: `long-${agent} is done`,
      });
      const { body: tokens } = await own.get(
        `/api/conversations/${body.conversation_id}/token-usage`,
      );
      // Messages report the prompt as they begin; the rest, both report at the end only.
      expect(tokens.breakdown.at(-1)).toMatchObject({
        prompt_tokens: agent === 'messages' ? request.cost?.prompt : null,
        completion_tokens: null,
      });
    },
  );

  test('SIGTERM while a model is awaited lets the run end within the grace', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    provider.script(followingPlans(({ turn }) => (turn === 1 ? { until: promise } : {})));
    const before = provider.requests.length;
    await own.submit('chat', {
      id: 'awaited',
      turns: [[{ note: 'awaited', log: own.log }, { remember: 'awaited' }]],
    });
    await provider.received(before + 2);

    own.platform.signal('SIGTERM');
    await waitFor(() => own.platform.output().includes('stopping'), { describe: 'it is stopping' });
    resolve();
    expect(await own.platform.exit).toEqual({ code: 0, signal: null });

    // With those of the tests before.
    expect(await own.inspect()).toEqual({ completed: 7, cancelled: 2 });
    expect(provider.requests.length).toBe(before + 2);
    expect(linesOf('awaited')).toEqual(['begin awaited 1', 'end awaited 1']);
  });
});

const all = await engines();
describe.each(all)('on $name', (engine) => {
  const plan: Plan = { id: 'lent', turns: [[{ remember: 'm' }]] };
  const generate = (prompt: string) => ({
    request: { prompt, tools: true },
    nth: 1,
    corrections: [],
  });

  beforeEach(startProvider);
  afterEach(() => provider.close());

  test.each(['waits', 'runs elsewhere'])(
    'a claim that has lost its lease records nothing, when its job %s',
    async (where) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      provider.script(followingPlans((_, { index }) => (index === 1 ? { until: promise } : {})));
      const world = await thinkingWorld(engine, provider);
      const job = await world.submit();
      const first = world.worker('one');
      const ended = first.perform(job.id);
      const run = await first.pool.begun(job.id);
      const asked = run.ask('generate', generate(taskOf(plan)));
      const refused = expect(asked).rejects.toThrow('the job was given to another worker');
      await provider.received(2);

      world.clock.advance(leaseMs + 1);
      await world.recovery.sweep();
      if (where === 'waits') {
        resolve();
        await refused;
      }
      world.clock.advance(60_000);
      const second = world.worker('two');
      const endedAgain = second.perform(job.id);
      const again = await second.pool.begun(job.id);
      const result = await again.ask('generate', generate(taskOf(plan)));
      resolve();
      await refused;
      run.end(completed('late'));
      await ended;
      again.end(completed('in time'));
      await endedAgain;

      expect(result).toMatchObject({ text: 'lent is done #2', turns: 2 });
      expect(await world.row(job.id)).toMatchObject({ status: 'completed', output: '"in time"' });
      await expectBalanced(world.database, provider);
      const memories = await world.database.read.kysely
        .selectFrom('memories')
        .selectAll()
        .execute();
      expect(memories.map(({ content }) => content)).toEqual(['m']);
    },
  );

  test('a tool that begins again because its executor died goes on with what it thought, and remembers once', async () => {
    const outer: Plan = { id: 'outer', turns: [[{ tool: 'test__other__v1_0', input: {} }]] };
    const inner: Plan = { id: 'inner', turns: [[{ remember: 'by a tool' }]] };
    provider.script(followingPlans());
    const world = await thinkingWorld(engine, provider);
    const job = await world.submit();
    const { perform, pool } = world.worker('one');
    const ended = perform(job.id);
    const run = await pool.begun(job.id);
    const result = run.ask('generate', generate(taskOf(outer)));

    for (const outcome of [{ kind: 'displaced', suspect: false } as const, completed({})]) {
      const tool = await pool.begun(job.id);
      await tool.ask('remember', { content: 'by itself' });
      await tool.ask('generate', generate(taskOf(inner)));
      tool.report({ type: 'message', role: 'assistant', content: 'said by the tool' });
      void tool.ask('remember', { content: 'in passing' });
      tool.end(outcome);
    }
    await result;
    run.end(completed('done'));
    await ended;

    expect(await world.row(job.id)).toMatchObject({ status: 'completed' });
    await expectBalanced(world.database, provider);
    expect(provider.requests.length).toBe(4);
    const memories = await world.database.read.kysely.selectFrom('memories').selectAll().execute();
    expect(memories.map(({ content }) => content).sort()).toEqual([
      'by a tool',
      'by itself',
      'in passing',
    ]);
    // An attempt that resumes here restores all of it.
    const steps = await world.database.read.kysely.selectFrom('job_steps').selectAll().execute();
    const step = steps.find(({ name }) => name === 'test/v1.0/other');
    expect(JSON.parse(step?.memory ?? '[]')).toHaveLength(3);
    const said = (await world.messages(job)).map(({ content }) => content);
    expect(said.filter((content) => content === 'said by the tool')).toHaveLength(1);
  });

  test('what a tool that has answered said is in the conversation of a run that went on without it', async () => {
    const plan: Plan = { id: 'p', turns: [[{ tool: 'test__other__v1_0', input: {} }]] };
    const held = Promise.withResolvers<void>();
    const begun = provider.requests.length;
    provider.script(
      followingPlans((_, { index }) => (index === begun + 1 ? { until: held.promise } : {})),
    );
    const world = await thinkingWorld(engine, provider);
    const job = await world.submit();
    const one = world.worker('one');
    const firstEnded = one.perform(job.id);
    const first = await one.pool.begun(job.id);
    first.ask('generate', generate(taskOf(plan))).catch(() => {});
    const tool = await one.pool.begun(job.id);
    tool.report({ type: 'message', role: 'assistant', content: 'said by the tool' });
    tool.end(completed({}));
    await provider.received(begun + 2);

    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
    world.clock.advance(60_000);
    const two = world.worker('two');
    const secondEnded = two.perform(job.id);
    const second = await two.pool.begun(job.id);
    await second.ask('generate', generate(taskOf(plan)));
    second.end(completed('done'));
    await secondEnded;
    held.resolve();
    first.end(completed('late'));
    await firstEnded;

    const said = (await world.messages(job)).map(({ content }) => content);
    expect(said.filter((content) => content === 'said by the tool')).toHaveLength(1);
  });
});

describe.each(all.filter(({ name }) => name === 'PostgreSQL'))('on $name', (engine) => {
  beforeEach(startProvider);
  afterEach(() => provider.close());

  test.runIf(engine.name === 'PostgreSQL')(
    'claims that are lost and calls that end never wait for each other in a ring',
    async () => {
      const place = await engine.place();
      const database = await place.open();
      const world = await thinkingWorld({ ...engine, fresh: async () => database }, provider);
      const other = await world.callerOf('default');
      await world.agents.create(anyWriter(), { id: 'other', name: 'Other' });
      const jobs = await Promise.all(
        Array.from({ length: 300 }, (_, i) =>
          world.submit({
            agentId: i % 2 ? 'default' : 'other',
            apiKeyId: i % 4 < 2 ? world.caller.keyId : other.keyId,
          }),
        ),
      );
      const ids = jobs.map(({ id }) => id);
      const now = world.clock.now();
      const claimed = await database.write((tx) =>
        claimJobs(tx, ids, { by: 1, now, leaseUntil: now + leaseMs }),
      );
      const calls = await Promise.all(claimed.map((job) => beginCall(world, job)));

      /** Ends one call after the other, or loses its claim. */
      async function endCalls(isLost: boolean): Promise<void> {
        for (let next = calls.pop(); next !== undefined; next = calls.pop()) {
          const { job, end } = next;
          if (isLost)
            await world.settle({ job, outcome: workerLost, messages: [], openedJournal: true });
          else await end();
        }
      }
      await Promise.all(Array.from({ length: 12 }, (_, i) => endCalls(i % 3 > 0)));

      await expectBalanced(database);
      await database.close();
      expect(await deadlocksIn(place.at)).toBe(0);
    },
  );
});

const workerLost: AttemptOutcome = {
  kind: 'failed',
  code: 'worker_lost',
  message: 'It is gone',
  retryable: false,
};

/** A call of a model that has begun on record, and nowhere else. */
async function beginCall(world: JobsWorld, job: ClaimedJob) {
  const journal = openWholeJournal(world, job);
  const place = { generation: 'the only one', parent: null, turn: 1, agentVersion: 1 };
  const begun = await journal.beginCall({
    ...place,
    model: 'a/model',
    prompt: 10,
    expected: 10,
    output: 10,
  });
  if (begun.kind !== 'begun') throw new Error(`It was not begun: ${begun.kind}.`);
  return {
    job,
    end: () =>
      journal.endCall(begun.call, {
        ...place,
        status: 'completed',
        error: null,
        message: { role: 'assistant', text: 'Yes.', toolCalls: [] },
        isDialogue: true,
        usage: { prompt: 9, completion: 1 },
        estimated: 0,
        tools: [],
      }),
  };
}

/** Holds the last answers of the plans that it is told of back for ever, the first time. */
function holdOnce() {
  const wanted = new Map<string, 'first byte' | 'stream'>();
  const held = new Set<string>();
  return {
    /** Whether it is reached. */
    at(id: string, where: 'first byte' | 'stream') {
      wanted.set(id, where);
      return () => held.has(id);
    },
    script: followingPlans(({ plan, turn }, { protocol }) => {
      const where = turn === plan.turns.length ? wanted.get(plan.id) : undefined;
      if (where === undefined || held.has(plan.id)) return {};
      held.add(plan.id);
      const piece = plan.id.length + ' is done'.length;
      // In messages a piece says first that there will be text.
      const after = protocol === 'messages' ? 2 : 1;
      return where === 'stream' ? { piece, hold: { after, until: never } } : { until: never };
    }),
  };
}

/** Plans of every kind, no two alike. */
function randomPlans(log: string) {
  let made = 0;

  function callOf(name: string, memories: string[], depth: number): PlannedCall {
    switch (random(depth === 0 ? 6 : 5)) {
      case 0:
        return { note: name, log, remember: name };
      case 1:
        return { note: name, log, fail: 'as planned' };
      case 2: {
        const forget = memories.pop();
        return forget === undefined ? { remember: name } : { forget };
      }
      case 3:
        return { remember: name };
      case 4:
        return { note: name, log };
      default:
        return { think: [next(depth + 1), next(depth + 1)] };
    }
  }

  function next(depth = 0): Plan {
    made += 1;
    const id = `plan-${made}`;
    const memories: string[] = [];
    const turns = Array.from({ length: random(4) }, (_, turn) => {
      const calls = Array.from({ length: 1 + random(4) }, (_call, i) =>
        callOf(`${id}.${turn}.${i}`, memories, depth),
      );
      memories.push(
        ...calls.flatMap((call) =>
          'forget' in call || 'note' in call || !('remember' in call) ? [] : [call.remember],
        ),
      );
      return calls;
    });
    // What is thought inside a tool is asked for as text.
    const wrong = depth === 0 && random(3) === 0 ? { wrong: random(3) } : {};
    return { id, turns, unreported: random(4) === 0, ...wrong };
  }

  return { next };
}
