/**
 * Runs that wait, in processes that are killed: at each boundary of what is recorded, and at random. Every
 * step that was recorded was executed once, as counted in a file outside the platform; every job ends with the
 * result that it would have had; no question is asked twice; no event is lost or taken twice.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest';
import { canRunClusters } from '../support/cluster-load.ts';
import {
  boundaries,
  questionsOf,
  randomActs,
  resultOf,
  type Wanted,
  wantedBy,
} from '../support/durable-acts.ts';
import {
  type DurablePlatform,
  type DurableStores,
  durableEngines,
  enterDurablePlatform,
  play,
} from '../support/durable-platform.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(1, 50);
const times = kills === 1 ? 'once' : `${kills} times`;
const hasCluster = await canRunClusters();

// On each change SQLite: what differs is in test/contracts/durable-*.test.ts and in durable-lifecycle.test.ts.
const killedEngines = rounds(
  durableEngines.filter(({ name }) => name === 'SQLite'),
  [...durableEngines],
);

describe.each(killedEngines)('a platform on $name that is killed', ({ name, open }) => {
  const isSkipped = name !== 'SQLite' && !hasCluster;
  /** Of all tests: what is killed is started again. */
  let stores: DurableStores | undefined;
  let own: DurablePlatform;
  beforeAll(async () => {
    if (!isSkipped) stores = await open();
  });
  beforeEach(async () => {
    if (stores !== undefined) own = await enterDurablePlatform(stores);
  });
  afterEach(() => own?.leave());
  afterAll(() => stores?.close());

  /** Approves, and remembers what is on record, until the test is over. */
  function attend(): void {
    let isOver = false;
    const approving = own.approveAll(() => isOver);
    // A test that has failed closes the platform, and with it this.
    approving.catch(() => undefined);
    const remembering = (async () => {
      while (!isOver) {
        await own.remember().catch(() => undefined);
        await pause(rounds(100, 30));
      }
    })();
    ending = async () => {
      isOver = true;
      await Promise.all([approving, remembering]);
    };
    onTestFinished(() => {
      isOver = true;
    });
  }
  let ending: () => Promise<void>;

  /** Starts a run, and sends the events that it waits for, some before it waits. */
  async function begin(acts: Parameters<DurablePlatform['start']>[0]) {
    const id = await own.start(acts);
    // Awaited at the end of the test: a refusal before that must not count as unhandled.
    const sent = Promise.allSettled(
      wantedBy(acts).map(async (wanted) => {
        await pause(randomInteger(0, 1_500));
        await sendEvent(wanted);
      }),
    );
    return { id, acts, sent };
  }

  async function sendEvent({ event, key }: Wanted, data: unknown = { of: key }) {
    const headers = { 'idempotency-key': `${key}-${JSON.stringify(data)}` };
    const answer = await own.send('POST', '/api/events', { event, key, data }, headers);
    expect(answer.status, answer.text).toBe(202);
  }

  type Begun = Awaited<ReturnType<typeof begin>>;

  /** Everything has ended as it would have without a kill. */
  async function expectAsWithoutKills(runs: readonly Begun[]): Promise<void> {
    for (const { id, acts, sent } of runs) {
      for (const result of await sent) if (result.status === 'rejected') throw result.reason;
      const job = await own.jobIn(id, 'completed', 'failed', 'cancelled');
      expect(job.error).toBeNull();
      expect(job.output).toEqual(resultOf(acts));
    }
    await own.untilAllEnded();
    await ending();
    await own.expectRecordedOnce();
    const asked = runs.reduce((sum, { acts }) => sum + questionsOf(acts), 0);
    const questions = await own.sql(
      `SELECT status FROM approvals WHERE organization_id = '${own.organization}'`,
    );
    expect(questions).toEqual(Array.from({ length: asked }, () => ({ status: 'approved' })));
  }

  test.skipIf(isSkipped)(
    'at each boundary of a step, a wait and a resume goes on where it was',
    { timeout: 280_000 },
    async () => {
      beginChance();
      attend();
      const runs: Begun[] = [];
      // On each change an eighth of them, all in a soak.
      const every = rounds(8, 1);
      const at = name === 'SQLite' ? 1 : 2;
      for (const { acts } of boundaries().filter((_one, i) => i % every === at % every)) {
        runs.push(await begin(acts));
        // Few at a time, so that no run loses all its attempts to the kills of others.
        if (runs.length % 6 === 0) {
          for (const { id } of runs) await own.jobIn(id, 'completed', 'failed');
        }
      }

      await expectAsWithoutKills(runs);
      // Runs that are killed in one moment share a restart.
      expect(own.restarts()).toBeGreaterThan(runs.length / 4);
    },
  );

  test.skipIf(isSkipped)(
    'around a decision and an event keeps each, and takes it once',
    { timeout: 280_000 },
    async () => {
      beginChance();
      const count = rounds(1, 20);
      for (let round = 0; round < count; round += 1) {
        const event = `event-${round}`;
        const key = `key-${round}`;
        const acts = [{ approve: 'ask' }, { event, key }, { event, key }];
        const id = await own.start(acts);
        await own.jobIn(id, 'waiting');
        const pending = `/api/approvals?job_id=${id}`;
        const approval = (await own.send('GET', pending)).body.data[0].approval_id;

        const first = own
          .once('POST', `/api/approvals/${approval}/approve`, { reason: 'first' })
          .catch(() => undefined);
        await pause(randomInteger(0, 12));
        await own.kill('api');
        const answered = await first;
        const again = await own.send('POST', `/api/approvals/${approval}/reject`, {
          reason: 'second',
        });

        const isFirst = answered?.status === 200 || again.status === 409;
        const decided = (await own.send('GET', pending)).body;
        expect(decided.total).toBe(1);
        expect(decided.data[0]).toMatchObject(
          isFirst
            ? { status: 'approved', reason: 'first' }
            : { status: 'rejected', reason: 'second' },
        );
        if (answered?.status === 200) expect(again.status).toBe(409);

        const headers = { 'idempotency-key': `one-${round}` };
        const body = { event, key, data: 1 };
        const sending = own.once('POST', '/api/events', body, headers).catch(() => undefined);
        await pause(randomInteger(0, 12));
        await own.kill('api');
        await sending;
        await own.send('POST', '/api/events', body, headers);
        await own.send(
          'POST',
          '/api/events',
          { event, key, data: 2 },
          { 'idempotency-key': `two-${round}` },
        );

        const job = await own.jobIn(id, 'completed', 'failed');
        expect(job.error).toBeNull();
        expect(job.output).toEqual([isFirst, 1, 2]);
      }
    },
  );

  test.skipIf(isSkipped)(
    `${times} at random loses, repeats and forgets nothing`,
    { timeout: 580_000 },
    async () => {
      beginChance();
      attend();
      const runs: Begun[] = [];
      for (let kill = 0; kill < kills; kill += 1) {
        for (let i = 0; i < 6; i += 1) runs.push(await begin(randomActs()));
        await pause(randomInteger(0, 1_200));
        await own.kill(kill % 4 === 3 ? 'api' : 'worker');
      }

      await expectAsWithoutKills(runs);
      expect(own.restarts()).toBeGreaterThanOrEqual(kills);
    },
  );

  test.skipIf(isSkipped)('while all its runs wait, forgets no wait', async () => {
    const until = { approve: 'ask' };
    const ids = await Promise.all(
      Array.from({ length: 5 }, () => own.start([{ step: 'one' }, until, { step: 'two' }])),
    );
    for (const id of ids) await own.jobIn(id, 'waiting');

    await own.kill('worker');
    // On SQLite they are one process.
    if (name !== 'SQLite') await own.kill('api');

    let isOver = false;
    const approving = own.approveAll(() => isOver);
    for (const id of ids) {
      const job = await own.jobIn(id, 'completed', 'failed');
      expect(job).toMatchObject({ attempt: 1, output: ['one is done', true, 'two is done'] });
    }
    isOver = true;
    await approving;
    expect([...own.executions().values()]).toEqual(Array.from({ length: 10 }, () => 1));
    await waitFor(
      async () => {
        const { body } = await own.send('GET', `/api/jobs?skill_name=${play.split('/')[2]}`);
        return body.data.every(({ status }: { status: string }) => status === 'completed');
      },
      { describe: 'all have completed' },
    );
  });
});
