/** Files of work that waits for longer than files are kept. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DirectoryBlobs } from '../../src/adapters/blobs/directory-blobs.ts';
import { type FileOwner, Files } from '../../src/core/files/files.ts';
import { dayMs } from '../../src/kernel/clock.ts';
import { engines } from '../support/databases.ts';
import { jobsWorld } from '../support/jobs-world.ts';

describe.each(await engines())('on $name', (engine) => {
  test('a file that an unended job names or has made outlives its retention, and no other does', async () => {
    const world = await jobsWorld(engine);
    const files = new Files(
      world.context,
      new DirectoryBlobs(mkdtempSync(join(tmpdir(), 'files-')), true),
    );
    const organizationId = 'default';
    const give = (name: string, more: Partial<FileOwner> = {}) =>
      files.create({ organizationId, userId: null, jobId: null, ...more }, name, [
        Buffer.from(name),
      ] as never);
    const left = async () => {
      const { data } = await files.list(organizationId, {}, { limit: 50, offset: 0 });
      return data.map(({ name }) => name).sort();
    };
    const named = await give('named');
    await give('other');
    await give('own days', { retentionDays: 90 });
    const job = await world.submit({ input: JSON.stringify({ about: [{ id: named.id }] }) });
    await give('made');
    await world.database.write(async (tx) => {
      await tx.kysely
        .updateTable('files')
        .set({ job_id: job.id })
        .where('name', '=', 'made')
        .execute();
    });

    // Before they expire, so that no run finds them gone.
    world.clock.advance(30 * dayMs - 1_000);
    await files.purge();
    world.clock.advance(2_000);
    await files.purge();

    expect(await left()).toEqual(['made', 'named', 'own days']);
    expect((await files.find(organizationId, named.id)).id).toBe(named.id);
    world.clock.advance(31 * dayMs);
    await files.purge();
    expect(await left()).toEqual(['made', 'named', 'own days']);
    await world.jobs.cancel(organizationId, job.id);
    world.clock.advance(31 * dayMs);
    await files.purge();
    expect(await left()).toEqual([]);
  });
});
