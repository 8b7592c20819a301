/** The jobs of a revoked API key, on every database (docs/decisions/api-keys.md). */
import { describe, expect, test } from 'vitest';
import { endUnendedOfKey } from '../../src/core/jobs/revoked-key.ts';
import { newId } from '../../src/kernel/ids.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';

const page = { limit: 50, offset: 0 };

const revoke = (world: JobsWorld, cancelActive: boolean) =>
  endUnendedOfKey(world.context, world, world.caller.keyId, { cancelActive });

describe.each(await engines())('on $name', (engine) => {
  test('jobs that wait end as cancelled with the reason; those of other keys do not', async () => {
    const world = await jobsWorld(engine);
    const { keyId } = await world.callerOf('default');
    const other = await world.submit({ apiKeyId: keyId });
    const waiting = await world.submit({ apiKeyId: world.caller.keyId });
    const again = await world.submit({ apiKeyId: world.caller.keyId });
    await world.attempt(again.id, failed());

    await revoke(world, false);

    for (const { id, conversation_id } of [waiting, again]) {
      expect(await world.jobs.get('default', id)).toMatchObject({
        status: 'cancelled',
        error: { code: 'cancelled', message: expect.stringContaining('key') },
      });
      expect((await world.conversations.get('default', conversation_id)).status).toBe('failed');
    }
    expect((await world.row(other.id)).status).toBe('queued');
  });

  test.each([
    [false, 'completed'],
    [true, 'cancelled'],
  ])('a job that runs goes on, unless it is cancelled too (%s)', async (cancelActive, status) => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit({ apiKeyId: world.caller.keyId });
    const { run, ended } = await world.begin(id);

    await revoke(world, cancelActive);
    run.end(completed());
    await ended;

    expect((await world.row(id)).status).toBe(status);
  });

  test('a list is narrowed to the jobs of a key, with their number', async () => {
    const world = await jobsWorld(engine);
    const { keyId } = await world.callerOf('default');
    const own = await world.submit({ apiKeyId: keyId });
    const ended = await world.submit({ apiKeyId: keyId });
    await world.submit();
    await world.attempt(ended.id, completed());
    const list = async (filters: object) => {
      const { jobs, total } = await world.jobs.list(
        'default',
        { api_key_id: keyId, ...filters },
        page,
      );
      return [total, ...jobs.map(({ job_id }) => job_id)];
    };

    expect(await list({})).toEqual([2, ended.id, own.id]);
    expect(await list({ status: 'completed' })).toEqual([1, ended.id]);
    expect(await list({ created_after: 0 })).toEqual([2, ended.id, own.id]);
    expect(await world.jobs.list('another', { api_key_id: keyId }, page)).toMatchObject({
      total: 0,
    });
  });

  test('queued and active jobs of a key are listed behind any number of newer jobs of other keys', async () => {
    const world = await jobsWorld(engine);
    const { keyId } = await world.callerOf('default');
    const waiting = await world.submit({ apiKeyId: keyId });
    const running = await world.submit({ apiKeyId: keyId });
    const { run, ended } = await world.begin(running.id);
    const newer = await world.row((await world.submit()).id);
    const copies = Array.from({ length: 10_000 }, () => ({ ...newer, id: newId() }));
    await world.database.write((tx) => tx.insert('jobs', copies));
    const list = async (status: 'queued' | 'active') => {
      const { jobs, total } = await world.jobs.list('default', { api_key_id: keyId, status }, page);
      return [total, ...jobs.map(({ job_id }) => job_id)];
    };

    expect(await list('queued')).toEqual([1, waiting.id]);
    expect(await list('active')).toEqual([1, running.id]);
    run.end(completed());
    await ended;
  });
});
