/** Jobs that the run of another job starts: accepted, listed, ended, cancelled. */
import { describe, expect, test } from 'vitest';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { anyWriter } from '../support/writers.ts';

const all = { limit: 200, offset: 0 };

const echo = 'test/v1.0/echo';

/** The transaction in which the run of a job starts a child. */
async function begin(world: JobsWorld, id: string, skill = echo, input: unknown = { a: 1 }) {
  const { database, childJobs, clock } = world;
  const job = await world.row(id);
  const now = clock.now();
  const wanted = childJobs.read({ skill, input }, job, now);
  return database.write((tx) => childJobs.begin(tx, { job, n: 1, name: 'letter', ...wanted }));
}

const childrenOf = async ({ jobs }: JobsWorld, parent_job_id: string) =>
  (await jobs.list('default', { parent_job_id }, all)).jobs;

/** The same where the model of the run gives another agent the task. */
async function beginWith(world: JobsWorld, id: string, agent: string) {
  const { database, childJobs, clock } = world;
  const job = await world.row(id);
  const now = clock.now();
  const wanted = childJobs.read({ skill: echo, input: {}, agent }, job, now);
  await database.write((tx) => childJobs.begin(tx, { job, n: 1, name: 'letter', ...wanted }));
  const [child] = await childrenOf(world, id);
  return child as { job_id: string; agent_id: string };
}

/** Accepts a child of a job, as the job's run does. */
function submitChild(world: JobsWorld, parent: { id: string }, step = 1, depth = 0) {
  return world.submit({ parent: { jobId: parent.id, step, depth } });
}

describe.each(await engines())('child jobs on $name', (engine) => {
  test('a job records its parent, the step there and its depth', async () => {
    const world = await jobsWorld(engine);
    const parent = await world.submit();

    const child = await submitChild(world, parent, 7);
    const grandchild = await submitChild(world, child, 1, 1);

    expect(await world.row(parent.id)).toMatchObject({ parent_job_id: null, depth: 0 });
    expect(await world.row(child.id)).toMatchObject({
      parent_job_id: parent.id,
      parent_step: 7,
      depth: 1,
    });
    expect(await world.row(grandchild.id)).toMatchObject({ parent_job_id: child.id, depth: 2 });
    expect(child.conversation_id).not.toBe(parent.conversation_id);
  });

  test('another agent gets the task, unless it is gone, paused, above it already, or the fifth', async () => {
    const world = await jobsWorld(engine);
    const { agents } = world;
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await agents.create(anyWriter(), { id });
    const first = await world.submit({ agentId: 'a' });

    let last = first.id;
    for (const agent of ['b', 'c', 'd', 'e']) {
      const child = await beginWith(world, last, agent);
      expect(child.agent_id).toBe(agent);
      last = child.job_id;
    }

    await expect(beginWith(world, last, 'b')).rejects.toThrow(
      'the agent b works on this task already: a → b → c → d → e → b',
    );
    await expect(beginWith(world, last, 'f')).rejects.toThrow('5 agents have passed the task on');
    await expect(beginWith(world, first.id, 'stranger')).rejects.toThrow(
      'there is no agent stranger',
    );
    await agents.update(anyWriter(), 'f', { status: 'paused' });
    await expect(beginWith(world, first.id, 'f')).rejects.toThrow('the agent f is paused');
    await expect(beginWith(world, first.id, 'a')).rejects.toThrow('already: a → a');
  });

  test('a claim knows the parent, also one that was made as the job was accepted', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 1 });
    const parent = await world.submit();
    const requests = [
      world.request({ parent: { jobId: parent.id, step: 3, depth: 0 } }),
      world.request(),
    ];

    await world.database.write((tx) => world.acceptor.acceptWithin(tx, requests));

    const parents = world.begun.map(({ parent_job_id }) => parent_job_id);
    expect(parents).toEqual([null, parent.id]);
    const [claimed] = await world.database.write((tx) => world.admission.claim(tx, [parent.id]));
    expect(claimed).toBe(null);
  });

  test('a list of the children of a job has those alone, with total and pages', async () => {
    const world = await jobsWorld(engine);
    const { jobs, attempt } = world;
    const parent = await world.submit();
    const other = await world.submit();
    const children: string[] = [];
    for (let i = 0; i < 5; i++) children.unshift((await submitChild(world, parent, i)).id);
    const stranger = await submitChild(world, other);
    await attempt(children[0] as string, failed({ retryable: false }));
    const list = async (parent_job_id: string, more = {}, page = all) => {
      const { jobs: rows, total } = await jobs.list('default', { parent_job_id, ...more }, page);
      return { ids: rows.map(({ job_id }) => job_id), total };
    };

    expect(await list(parent.id)).toEqual({ ids: children, total: 5 });
    expect(await list(parent.id, {}, { limit: 2, offset: 1 })).toEqual({
      ids: children.slice(1, 3),
      total: 5,
    });
    expect(await list(parent.id, { status: 'failed' })).toEqual({ ids: [children[0]], total: 1 });
    expect(await list(parent.id, { created_after: world.clock.now() + 1 })).toMatchObject({
      ids: [],
    });
    expect(await list(other.id)).toEqual({ ids: [stranger.id], total: 1 });
    expect(await list(stranger.id)).toEqual({ ids: [], total: 0 });
    const foreign = await jobs.list('acme', { parent_job_id: parent.id }, all);
    expect(foreign).toEqual({ jobs: [], total: 0 });
  });

  test('the job and its entry in a list name the parent; a retry has none', async () => {
    const world = await jobsWorld(engine);
    const { jobs, caller, attempt } = world;
    const parent = await world.submit();
    const child = await submitChild(world, parent);
    await attempt(child.id, failed({ retryable: false }));

    const { job: again } = await jobs.retry(caller, child.id);

    expect(await jobs.get('default', child.id)).toMatchObject({ parent_job_id: parent.id });
    expect(await jobs.get('default', again.id)).toMatchObject({
      parent_job_id: null,
      retry_of: child.id,
    });
    const listed = (await jobs.listTimed('default', {}, all)).jobs;
    expect(listed.map(({ parent_job_id }) => parent_job_id)).toEqual([null, parent.id, null]);
    await attempt(again.id, completed());
  });

  describe('a run that starts a job', () => {
    test('accepts it with its own key, agent and user, and in a conversation of its own', async () => {
      const world = await jobsWorld(engine);
      const parent = await world.submit({ userId: 'ada', agentId: 'default' });

      expect(await begin(world, parent.id, 'test/v1.0/other', { to: 'b' })).toBe(null);

      const [listed] = await childrenOf(world, parent.id);
      const child = await world.row(listed?.job_id ?? '');
      expect(child).toMatchObject({
        parent_job_id: parent.id,
        parent_step: 1,
        depth: 1,
        api_key_id: world.caller.keyId,
        agent_id: 'default',
        user_id: 'ada',
        organization_id: 'default',
        trigger_type: 'api',
        status: 'queued',
        max_attempts: 2,
        input: '{"to":"b"}',
        retry_of: null,
      });
      expect(child.conversation_id).not.toBe(parent.conversation_id);
      expect(world.hints).toContainEqual(expect.objectContaining({ id: child.id }));
    });

    test('is refused without an active skill of that name', async () => {
      const world = await jobsWorld(engine);
      const parent = await world.submit();

      await expect(begin(world, parent.id, 'test/v1.0/none')).rejects.toMatchObject({
        message: 'there is no active skill test/v1.0/none',
        retryable: false,
      });
      for (const skill of [null, 3, 'x'.repeat(301)]) {
        await expect(begin(world, parent.id, skill as string)).rejects.toThrow('needs the name');
      }
      expect(await childrenOf(world, parent.id)).toEqual([]);
    });

    test('is refused when its key lacks a scope of the skill, or is revoked', async () => {
      const world = await jobsWorld(engine);
      const { keyId } = await world.callerOf('default', ['test']);
      const parent = await world.submit({ apiKeyId: keyId });
      await begin(world, parent.id);

      await expect(begin(world, parent.id, 'test/v1.0/guarded')).rejects.toMatchObject({
        message: expect.stringContaining('its API key is revoked or lacks a scope of the skill'),
        retryable: false,
      });
      await world.apiKeys.revoke(keyId);
      await expect(begin(world, parent.id)).rejects.toThrow('its API key is revoked');
      expect(await childrenOf(world, parent.id)).toHaveLength(1);
    });

    test("is refused for an input that the skill's schema refuses", async () => {
      const world = await jobsWorld(engine);
      const parent = await world.submit();

      await expect(begin(world, parent.id, echo, 'words')).rejects.toMatchObject({
        message: expect.stringContaining(`the input does not fit the schema of ${echo}: body`),
        retryable: false,
      });
    });

    test('may start 1,000 jobs, nested 8 deep', async () => {
      const world = await jobsWorld(engine);
      const parent = await world.submit({ parent: { jobId: 'x', step: 1, depth: 6 } });
      await begin(world, parent.id);
      const [child] = await childrenOf(world, parent.id);
      await expect(begin(world, child?.job_id ?? '')).rejects.toThrow('is 8 jobs below the first');

      const other = await world.submit();
      await Promise.all(Array.from({ length: 999 }, () => submitChild(world, other)));
      await begin(world, other.id);
      await expect(begin(world, other.id)).rejects.toThrow('has started 1000 jobs');
    });
  });
});
