/** Files of work that waits for longer than files are kept. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DirectoryBlobs } from '../../src/adapters/blobs/directory-blobs.ts';
import type { Database } from '../../src/adapters/database/database.ts';
import { Files } from '../../src/core/files/files.ts';
import { resumedFrom } from '../../src/core/journal/taken-over.ts';
import { dayMs } from '../../src/kernel/clock.ts';
import { type Engine, engines } from '../support/databases.ts';
import { jobsWorld } from '../support/jobs-world.ts';

const organizationId = 'default';

async function filesWorld(engine: Engine) {
  const world = await jobsWorld(engine);
  const blobs = new DirectoryBlobs(mkdtempSync(join(tmpdir(), 'files-')), true);
  const files = new Files(world.context, blobs);
  const give = (name: string) =>
    files.create({ organizationId, userId: null, jobId: null }, name, [Buffer.from(name)] as never);
  return {
    ...world,
    blobs,
    files,
    give,
    /** A file that the job has made. */
    async made(name: string, job: { id: string }) {
      const { id } = await give(name);
      await world.database.write(async (tx) => {
        await tx.kysely.updateTable('files').set({ job_id: job.id }).where('id', '=', id).execute();
      });
    },
    async left() {
      const { data } = await files.list(organizationId, {}, { limit: 50, offset: 0 });
      return data.map(({ name }) => name).sort();
    },
    /** As purges do that run all the time. */
    async purgeFor(days: number) {
      world.clock.advance(days * dayMs - 1_000);
      await files.purge();
      world.clock.advance(2_000);
      await files.purge();
    },
    end: (job: { id: string }) => world.jobs.cancel(organizationId, job.id),
    async expiryOf(id: string) {
      return (await files.find(organizationId, id)).expires_at;
    },
  };
}

describe.each(await engines())('on $name', (engine) => {
  test('a job keeps the files that its input names, by each way to start it, from the moment at which it may begin', async () => {
    const world = await filesWorld(engine);
    const { clock, jobs, caller, expiryOf } = world;
    const [named, other] = [await world.give('named'), await world.give('other')];
    const input = JSON.stringify({ about: [{ id: named.id, job: 'none' }] });
    clock.advance(29 * dayMs);

    const job = await world.submit({ input, timing: { delayMs: 40 * dayMs } });

    expect(await expiryOf(named.id)).toBe(clock.now() + 70 * dayMs);
    expect(await expiryOf(other.id)).toBe(other.expires_at);
    const run_at = new Date(clock.now() + 50 * dayMs).toISOString();
    await jobs.change(organizationId, job.id, { run_at });
    expect(await expiryOf(named.id)).toBe(clock.now() + 80 * dayMs);
    await world.end(job);
    clock.advance(79 * dayMs);
    await jobs.retry(caller, job.id);
    expect(await expiryOf(named.id)).toBe(clock.now() + 30 * dayMs);
  });

  test('no job keeps files of another organization', async () => {
    const world = await filesWorld(engine);
    const { id, expires_at } = await world.give('named');
    const { organizationId: other, keyId } = await world.callerOf('other');
    world.clock.advance(29 * dayMs);

    await world.submit({ organizationId: other, apiKeyId: keyId, input: JSON.stringify({ id }) });

    expect(await world.expiryOf(id)).toBe(expires_at);
  });

  test('files that a job has made stay until it and the jobs above it have ended', async () => {
    const world = await filesWorld(engine);
    const [first, second, child] = [
      await world.submit(),
      await world.submit(),
      await world.submit(),
    ];
    await world.made('of the child', child);
    await world.made('of a job', second);
    await world.give('other');
    await world.end(child);
    await world.end(second);
    await world.database.write(async (tx) => {
      const below = tx.kysely.updateTable('jobs').set({ parent_job_id: first.id });
      await below.where('id', '=', child.id).execute();
    });

    await world.purgeFor(30);
    expect(await world.left()).toEqual(['of the child']);
    await world.purgeFor(30);
    expect(await world.left()).toEqual(['of the child']);
    await world.end(first);
    await world.purgeFor(30);

    expect(await world.left()).toEqual([]);
  });

  test('files that a job has made stay until those that resume it have ended', async () => {
    const world = await filesWorld(engine);
    let last = await world.submit();
    await world.made('of the first', last);
    for (let i = 0; i < 2; i += 1) {
      await world.end(last);
      const resumes = resumedFrom(await world.row(last.id));
      last = await world.submit({ retryOf: last.id, resumes });
    }

    await world.purgeFor(30);
    expect(await world.left()).toEqual(['of the first']);
    await world.end(last);
    await world.purgeFor(30);

    expect(await world.left()).toEqual([]);
  });

  test('bytes that no file names are removed though expired files cannot be deleted', async () => {
    const world = await filesWorld(engine);
    const file = await world.give('deleted');
    await world.files.remove(organizationId, file.id);
    let isBroken = true;
    const database = new Proxy(world.database, {
      get(target, key: keyof Database) {
        if (key === 'read' && isBroken) {
          isBroken = false;
          throw new Error('canceling statement due to statement timeout');
        }
        const value = target[key];
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });

    const purge = new Files({ ...world.context, database }, world.blobs).purge();

    await expect(purge).rejects.toThrow(/statement timeout/);
    expect(await world.blobs.has(file.blob_key, Number(file.bytes))).toBe(false);
  });
});
