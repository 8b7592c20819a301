/** Lists of jobs and conversations: filters, pages, tokens. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { ConversationFilters } from '../../src/core/conversations/conversation-lists.store.ts';
import { type JobFilters, listJobs, walkedMaxOfUser } from '../../src/core/jobs/job-lists.store.ts';
import { idFloor } from '../../src/kernel/ids.ts';
import { openJobs } from '../../src/platform/user-data/user-data.store.ts';
import { expectConsistent } from '../support/consistency.ts';
import { copyJob } from '../support/copied-jobs.ts';
import { engines } from '../support/databases.ts';
import { waitingParent } from '../support/families.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { plansOf, recording, rowsOf } from '../support/query-plans.ts';
import { anyWriter } from '../support/writers.ts';

const all = { limit: 200, offset: 0 };
const statuses = ['queued', 'active', 'completed', 'failed', 'cancelled'] as const;
const skills = ['echo', 'other', 'single'];
const triggers = ['api', 'scheduled', 'webhook'] as const;

/** Jobs of two organizations: every status, with agents, skills and triggers mixed. */
async function manyJobs(world: JobsWorld): Promise<void> {
  const { accept, agents, callerOf, jobs, attempt, begin, clock } = world;
  const callers = { default: world.caller, acme: await callerOf('acme') };
  for (const organizationId of ['default', 'acme'] as const) {
    await agents.create(anyWriter(organizationId), { id: 'helper' });
    for (let i = 0; i < 45; i++) {
      clock.advance(1_000);
      const acceptance = await accept({
        organizationId,
        apiKeyId: callers[organizationId].keyId,
        agentId: i % 2 === 0 ? 'default' : 'helper',
        userId: i % 4 === 0 ? 'ann' : 'bob',
        triggerType: triggers[i % 3] ?? 'api',
        skill: {
          category: 'test',
          name: skills[i % 3] ?? '',
          version: i % 5 < 4 ? 'v1.0' : 'v2.0',
        },
        maxAttempts: 3,
        input: `${i}`,
        retryOf: null,
      });
      if (acceptance.kind !== 'accepted') throw new Error(acceptance.kind);
      const { id } = acceptance.job;
      const hasDefinition = i % 5 < 4;
      switch (statuses[(i + 3) % 5]) {
        case 'active':
          if (hasDefinition) await begin(id);
          break;
        case 'completed':
          await attempt(id, completed(i));
          break;
        case 'failed':
          await attempt(id, failed({ retryable: false }));
          break;
        case 'cancelled':
          await jobs.cancel(organizationId, id);
          break;
      }
    }
  }
}

/** Counts of a thousand processes that have counted nothing. */
async function addWriters({ database }: JobsWorld): Promise<void> {
  const ofDefault = database.read.kysely
    .selectFrom('job_counts')
    .selectAll()
    .where('organization_id', '=', 'default');
  const columns = Object.keys((await ofDefault.limit(1).execute())[0] ?? {});
  const values: Readonly<Record<string, string>> = { writer: `'writer ' || n`, count: '0' };
  const written = sql.join(columns.map((name) => sql.raw(values[name] ?? name)));
  await database.write((tx) =>
    sql`insert into job_counts (${sql.join(columns.map((name) => sql.ref(name)))})
      with recursive writers(n) as (select 1 union all select n + 1 from writers where n < 1001)
      select ${written} from job_counts, writers where organization_id = 'default'`.execute(
      tx.kysely,
    ),
  );
}

/** Ten thousand jobs of one kind, newer than all others. */
async function addNewerJobs({ database, submit, attempt }: JobsWorld): Promise<void> {
  const { id } = await submit({ agentId: 'busy' });
  await attempt(id, completed());
  await copyJob(database, id, 10_000);
}

/** Lets the organization's jobs have been accepted half an hour apart; when each was. */
async function spread({ database, clock }: JobsWorld): Promise<number[]> {
  const jobs = await database.read.kysely
    .selectFrom('jobs')
    .select('id')
    .where('organization_id', '=', 'default')
    .orderBy('id')
    .execute();
  const moments = jobs.map((_, i) => clock.now() + i * 1_800_000);
  await database.write(async (tx) => {
    for (const [i, { id }] of jobs.entries()) {
      const created_at = moments[i] ?? 0;
      // An id may be made some milliseconds later than its job.
      const late = idFloor(created_at + (i % 3));
      await tx.kysely
        .updateTable('jobs')
        .set({ id: `${late.slice(0, 18)}${id.slice(18)}`, created_at })
        .where('id', '=', id)
        .execute();
      await tx.kysely
        .updateTable('messages')
        .set({ job_id: `${late.slice(0, 18)}${id.slice(18)}` })
        .where('job_id', '=', id)
        .execute();
    }
  });
  return moments;
}

/** No filter, each value of each field, and each two of different fields. */
function combinationsOf<Filters>(values: Readonly<Record<string, readonly string[]>>): Filters[] {
  const single = Object.entries(values).flatMap(([name, of]) => of.map((value) => [name, value]));
  const several = single.flatMap((one, i) =>
    single
      .slice(i + 1)
      .filter(([name]) => name !== one[0])
      .map((other) => [one, other]),
  );
  return [[], ...single.map((one) => [one]), ...several].map(
    (fields) => Object.fromEntries(fields) as Filters,
  );
}

describe.each(await engines())('on $name', (engine) => {
  describe('the list of jobs', () => {
    type Words = Omit<
      JobFilters,
      | ('conversation_id' | 'api_key_id' | 'parent_job_id' | 'user_id' | 'batch_id')
      | ('created_after' | 'created_before')
    >;
    const values: { [K in keyof Words]-?: NonNullable<Words[K]>[] } = {
      status: [...statuses],
      agent_id: ['default', 'helper', 'nobody'],
      skill_category: ['test', 'tes', ''],
      skill_name: [...skills, 'ECHO'],
      skill_version: ['v1.0', 'v2.0', 'v1'],
      trigger_type: [...triggers],
    };

    /** How a page is looked for depends on how much else there is (`job-lists.store.ts`). */
    test.each([
      ['', async () => {}],
      [', where there are thousands of kinds', addWriters],
      [
        ', where there are thousands of kinds and many newer jobs',
        async (world: JobsWorld) => {
          await addNewerJobs(world);
          await addWriters(world);
        },
      ],
    ])(
      'filters by each field and by several at once, and its total counts what fits%s',
      async (_, add) => {
        const world = await jobsWorld(engine);
        await manyJobs(world);
        await expectConsistent(world.database);
        await add(world);
        const rows = await world.database.read.kysely
          .selectFrom('jobs')
          .selectAll()
          .where('organization_id', '=', 'default')
          .orderBy('id', 'desc')
          .execute();

        const sizes = new Set<number>();
        for (const filters of combinationsOf<JobFilters>(values)) {
          const wanted = Object.entries(filters);
          const fitting = rows.filter((row) =>
            wanted.every(([name, value]) => row[name as 'status'] === value),
          );
          const { jobs, total } = await world.jobs.list('default', filters, all);

          expect(total, JSON.stringify(filters)).toBe(fitting.length);
          expect(
            jobs.map(({ job_id }) => job_id),
            JSON.stringify(filters),
          ).toEqual(fitting.slice(0, all.limit).map(({ id }) => id));
          sizes.add(total);
        }
        // The rows are mixed enough for the filters to tell them apart.
        expect(sizes.size).toBeGreaterThan(8);
      },
    );

    test('of a conversation has its jobs alone', async () => {
      const world = await jobsWorld(engine);
      await manyJobs(world);
      const job = await world.submit();
      const { conversation_id } = job;

      const found = await world.jobs.list('default', { conversation_id }, all);
      expect(found).toMatchObject({ total: 1, jobs: [{ job_id: job.id, conversation_id }] });
      const with_status = { conversation_id, status: 'completed' } as const;
      expect(await world.jobs.list('default', with_status, all)).toEqual({ total: 0, jobs: [] });
      expect((await world.jobs.list('acme', { conversation_id }, all)).total).toBe(0);
    });

    test('between two timestamps has only the jobs between them, with every other filter', async () => {
      const world = await jobsWorld(engine);
      await manyJobs(world);
      const moments = await spread(world);
      const rows = await world.database.read.kysely
        .selectFrom('jobs')
        .selectAll()
        .where('organization_id', '=', 'default')
        .orderBy('id', 'desc')
        .execute();
      const bounds = [undefined, moments[0], moments[20], (moments[20] ?? 0) + 1, moments[44]];
      const others: JobFilters[] = [
        {},
        ...statuses.map((status) => ({ status })),
        { agent_id: 'helper', trigger_type: 'webhook' },
        { conversation_id: rows[7]?.conversation_id },
      ];

      for (const created_after of bounds) {
        for (const created_before of bounds) {
          for (const other of others) {
            const filters = { ...other, created_after, created_before };
            const fitting = rows.filter(
              (row) =>
                row.created_at > (created_after ?? Number.NEGATIVE_INFINITY) &&
                row.created_at < (created_before ?? Number.POSITIVE_INFINITY) &&
                Object.entries(other).every(([name, value]) => row[name as 'status'] === value),
            );
            const { jobs, total } = await world.jobs.list('default', filters, all);

            expect(total, JSON.stringify(filters)).toBe(fitting.length);
            expect(
              jobs.map(({ job_id }) => job_id),
              JSON.stringify(filters),
            ).toEqual(fitting.map(({ id }) => id));
          }
        }
      }
    });

    test('with timing has the same values as the job itself', async () => {
      const world = await jobsWorld(engine);
      await manyJobs(world);

      const { jobs } = await world.jobs.listTimed('default', {}, all);

      expect(jobs).toHaveLength(45);
      for (const job of jobs) {
        const whole = await world.jobs.get('default', job.job_id);
        expect(whole).toMatchObject(job);
        expect(job.error === null).toBe(!['failed', 'cancelled'].includes(job.status));
      }
    });

    test('has the fields of the 202 for each job, its status and its parent', async () => {
      const { submit, jobs, clock } = await jobsWorld(engine);
      const job = await submit();

      const listed = await jobs.list('default', {}, all);

      expect(listed).toEqual({
        total: 1,
        jobs: [
          {
            job_id: job.id,
            status: 'queued',
            conversation_id: job.conversation_id,
            agent_id: 'default',
            skill_category: 'test',
            skill_name: 'echo',
            skill_version: 'v1.0',
            parent_job_id: null,
            created_at: new Date(clock.now()).toISOString(),
          },
        ],
      });
    });

    test('of a user has the newest 10,000 jobs, and all that have not ended', async () => {
      const { submit, attempt, database, jobs } = await jobsWorld(engine);
      const ofAnn = { userId: 'ann', isForUser: true };
      const open = await submit(ofAnn);
      const { id } = await submit(ofAnn);
      await attempt(id, completed());
      await copyJob(database, id, walkedMaxOfUser);

      const byUser = { user_id: 'ann' };
      const queued = await jobs.list('default', { ...byUser, status: 'queued' }, all);
      const last = { limit: 10, offset: walkedMaxOfUser };

      expect((await jobs.list('default', byUser, all)).total).toBe(walkedMaxOfUser);
      expect(await jobs.list('default', byUser, last)).toMatchObject({ jobs: [] });
      expect(queued).toMatchObject({ total: 1, jobs: [{ job_id: open.id }] });
    });

    test('of a user that have not ended reads none of those that have, as an erasure does not', async () => {
      const { submit, attempt, database } = await jobsWorld(engine);
      const ofAnn = { userId: 'ann', isForUser: true };
      const { id } = await submit(ofAnn);
      await attempt(id, completed());
      await copyJob(database, id, 2_000);
      await submit(ofAnn);
      if (engine.name === 'PostgreSQL') await sql`analyze jobs`.execute(database.read.kysely);
      const { handle, asked } = recording(database);

      for (const status of ['queued', 'active', 'waiting'] as const) {
        await listJobs(handle, 'default', { user_id: 'ann', status }, { limit: 10, offset: 0 });
      }
      const open = await openJobs(handle, { organizationId: 'default', userId: 'ann' }, 10);

      expect(open.total).toBe(1);
      expect(asked.length).toBeGreaterThan(3);
      for (const query of asked) {
        if (engine.name === 'PostgreSQL') {
          expect(await rowsOf(database, query), query.sql).toBeLessThan(100);
        } else {
          const plans = await plansOf(database, 'jobs', query);
          expect(plans.join(), query.sql).not.toMatch(
            /jobs_of_user|jobs_waiting|\(organization_id=\?\)/,
          );
          expect(plans.join(), query.sql).toContain('jobs_open_of_user');
        }
      }
    });

    test('comes in pages, newest first, without gap or double; past the end it is empty', async () => {
      const { submit, jobs } = await jobsWorld(engine);
      const ids: string[] = [];
      for (let i = 0; i < 25; i++) ids.push((await submit()).id);

      const paged: string[] = [];
      for (let offset = 0; offset < 25; offset += 10) {
        const page = await jobs.list('default', {}, { limit: 10, offset });
        expect(page.total).toBe(25);
        paged.push(...page.jobs.map(({ job_id }) => job_id));
      }

      expect(paged).toEqual(ids.toReversed());
      for (const offset of [25, 26, 2_147_483_647]) {
        const page = await jobs.list('default', {}, { limit: 10, offset });
        expect(page).toEqual({ total: 25, jobs: [] });
      }
    });

    test("never contains or counts another organization's jobs", async () => {
      const { submit, jobs, callerOf } = await jobsWorld(engine);
      await callerOf('acme');
      await submit();

      expect(await jobs.list('acme', {}, all)).toEqual({ total: 0, jobs: [] });
      const filters = { agent_id: 'default', status: 'queued' } as const;
      expect(await jobs.list('acme', filters, all)).toEqual({ total: 0, jobs: [] });
    });

    test('takes any text as a filter', async () => {
      const { submit, jobs } = await jobsWorld(engine);
      await submit();

      for (const agent_id of ["' or 1=1 --", '%', '_', '😀', '', 'default\n']) {
        expect(await jobs.list('default', { agent_id }, all)).toEqual({ total: 0, jobs: [] });
      }
    });
  });

  describe('the list of conversations', () => {
    const values: { [K in keyof ConversationFilters]-?: NonNullable<ConversationFilters[K]>[] } = {
      agent_id: ['default', 'helper', 'nobody'],
      user_id: ['ann', 'bob', 'carl'],
      status: ['active', 'completed', 'failed'],
      trigger_type: [...triggers],
    };

    test('filters by each field and by several at once, and its total counts what fits', async () => {
      const world = await jobsWorld(engine);
      await manyJobs(world);
      const rows = await world.database.read.kysely
        .selectFrom('conversations')
        .selectAll()
        .where('organization_id', '=', 'default')
        .orderBy('id', 'desc')
        .execute();

      for (const filters of combinationsOf<ConversationFilters>(values)) {
        const fitting = rows.filter((row) =>
          Object.entries(filters).every(([name, value]) => row[name as 'status'] === value),
        );
        const found = await world.conversations.list('default', filters, all);

        expect(found.total, JSON.stringify(filters)).toBe(fitting.length);
        expect(
          found.conversations.map(({ id }) => id),
          JSON.stringify(filters),
        ).toEqual(fitting.map(({ id }) => id));
      }
    });

    test('has those whose run waits among the active ones', async () => {
      const world = await jobsWorld(engine);
      const { id, children } = await waitingParent(world, 1);
      const { conversation_id } = await world.row(id);
      const jobs = await Promise.all([...children].map((child) => world.row(child)));
      const ids = [conversation_id, ...jobs.map((job) => job.conversation_id)];

      const found = await world.conversations.list('default', { status: 'active' }, all);

      expect((await world.row(id)).status).toBe('waiting');
      expect(found.total).toBe(2);
      expect(found.conversations.map((one) => one.id).sort()).toEqual(ids.sort());
    });

    test('comes in pages, newest first', async () => {
      const { submit, conversations } = await jobsWorld(engine);
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) ids.push((await submit()).conversation_id);

      const page = await conversations.list('default', {}, { limit: 3, offset: 3 });
      const byUser = { user_id: 'someone' };
      const filtered = await conversations.list('default', byUser, { limit: 3, offset: 6 });

      expect(page.total).toBe(7);
      expect(page.conversations.map(({ id }) => id)).toEqual([ids[3], ids[2], ids[1]]);
      expect(filtered.conversations.map(({ id }) => id)).toEqual([ids[0]]);
    });

    test("never shows another organization's conversation", async () => {
      const { submit, conversations, callerOf } = await jobsWorld(engine);
      await callerOf('acme');
      const job = await submit();

      expect(await conversations.list('acme', {}, all)).toEqual({ total: 0, conversations: [] });
      await expect(conversations.get('acme', job.conversation_id)).rejects.toMatchObject({
        code: 'not_found',
        message: 'Conversation not found',
      });
      await expect(conversations.get('default', job.id)).rejects.toMatchObject({
        message: 'Conversation not found',
      });
    });
  });

  describe('messages', () => {
    test('come oldest first, in pages, and of one role when it is asked for', async () => {
      const { submit, attempt, conversations } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, completed('the end'), (run) => {
        for (let i = 0; i < 8; i++) {
          const role = i % 2 === 0 ? 'tool' : 'assistant';
          run.report({ type: 'message', role, content: `said ${i}` });
        }
      });
      const conversation = { organization_id: job.organization_id, id: job.conversation_id };
      const read = async (role: 'tool' | 'assistant' | 'system' | undefined, page = all) => {
        const found = await conversations.messages(conversation, role, page);
        return [found.total, ...found.messages.map(({ content }) => content)];
      };

      const said = Array.from({ length: 8 }, (_, i) => `said ${i}`);
      expect(await read(undefined)).toEqual([10, '{"a":1}', ...said, 'the end']);
      expect(await read(undefined, { limit: 3, offset: 1 })).toEqual([10, ...said.slice(0, 3)]);
      expect(await read('tool')).toEqual([4, 'said 0', 'said 2', 'said 4', 'said 6']);
      expect(await read('assistant', { limit: 2, offset: 4 })).toEqual([5, 'the end']);
      expect(await read('system')).toEqual([0]);
      expect(await read(undefined, { limit: 10, offset: 10 })).toEqual([10]);
    });
  });

  describe('token usage', () => {
    test('of a skill that calls no model is zero', async () => {
      const { submit, attempt, conversations, jobs } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, completed());

      const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
      const { usage } = await conversations.tokenUsage(job.conversation_id);
      expect(usage).toMatchObject({ conversation_id: job.conversation_id, ...none });
      expect(usage.breakdown.map(({ role }) => role)).toEqual(['user', 'assistant']);
      expect((await jobs.get('default', job.id)).token_stats).toMatchObject(none);
    });

    test("adds up: the breakdown's sums equal the totals, for the conversation and for each job", async () => {
      const { submit, database, conversations, jobs } = await jobsWorld(engine);
      const [one, other] = [await submit(), await submit()];
      // Large sums too: what one conversation costs may pass 2^31.
      const tokens = [3_000_000_000, 17, 0, 1_500_000_000, 9];
      await database.write((tx) =>
        tx.insert(
          'messages',
          tokens.map((n, i) => ({
            conversation_id: one.conversation_id,
            id: `0191f3b0-0000-7000-8000-00000000000${i}`,
            job_id: i < 3 ? one.id : other.id,
            role: 'assistant',
            content: '',
            prompt_tokens: n,
            completion_tokens: i,
            created_at: i,
          })),
        ),
      );

      const { usage } = await conversations.tokenUsage(one.conversation_id);
      const sum = (name: 'prompt_tokens' | 'completion_tokens') =>
        usage.breakdown.reduce((total, entry) => total + (entry[name] ?? 0), 0);

      expect(usage).toMatchObject({
        prompt_tokens: 4_500_000_026,
        completion_tokens: 10,
        total_tokens: 4_500_000_036,
      });
      expect(sum('prompt_tokens')).toBe(usage.prompt_tokens);
      expect(sum('completion_tokens')).toBe(usage.completion_tokens);
      expect((await conversations.get('default', one.conversation_id)).token_stats).toMatchObject({
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        total_tokens: usage.total_tokens,
      });
      expect((await jobs.get('default', one.id)).token_stats).toMatchObject({
        prompt_tokens: 3_000_000_017,
        completion_tokens: 3,
        total_tokens: 3_000_000_020,
      });
    });
  });
});
