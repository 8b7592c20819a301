/** Tasks with files whose storage is slow. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectRefusal } from '../support/expectations.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { answering } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
let storage: S3Server;
beforeAll(async () => {
  storage = await startS3();
  world = await startThinkers({
    environment: { ...storage.environment, OPENAI_CALLS_PER_MINUTE: '6000' },
  });
});
afterAll(async () => {
  await world.stop();
  await storage.close();
});

test('a call gets its moment once its files are read, a few of them at a time', async () => {
  const thinker = await newThinker(world.platform);
  const files: string[] = [];
  for (let n = 0; n < 6; n++) {
    const body = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(50, n)]);
    const headers = { 'content-type': 'image/png' };
    files.push((await thinker.send('POST', '/api/files', { body, headers })).body.id);
  }
  const released = Promise.withResolvers<void>();
  let reads = 0;
  storage.holdReads(() => {
    reads += 1;
    return released.promise;
  });
  world.provider.script(answering('Pictures.'));
  const paces = () =>
    world.platform.database.read.kysely.selectFrom('provider_paces').selectAll().execute();

  const { body: job } = await thinker.post('/api/agent/v1.0/run-task', { task: 'See', files });
  await waitFor(() => reads === 4, { describe: 'four reads' });
  expect(await paces()).toEqual([]);
  released.resolve();
  await thinker.jobIn(job.job_id, 'completed');

  storage.holdReads(null);
  expect(reads).toBe(6);
  expect(await paces()).not.toEqual([]);
});

test('an organization has two exports of the data of users at a time', async () => {
  const thinker = await newThinker(world.platform);
  await thinker.send('POST', '/api/files', { body: 'slow', headers: { 'x-user-id': 'alice' } });
  const released = Promise.withResolvers<void>();
  let reads = 0;
  storage.holdReads(() => {
    reads += 1;
    return released.promise;
  });
  const path = '/api/users/alice/data';

  const slow = [thinker.get(path), thinker.get(path)];
  await waitFor(() => reads === 2, { describe: 'two reads' });
  const third = await thinker.get(path);
  released.resolve();
  const statuses = (await Promise.all(slow)).map(({ status }) => status);

  expectRefusal(third, 503, 'service_unavailable');
  expect(statuses).toEqual([200, 200]);
  expect((await thinker.get(path)).status).toBe(200);
});
