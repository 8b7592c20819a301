import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { answering } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const versions = '/api/agents/thinker/versions';

test('versions are listed, compared and restored', async () => {
  const { get, put, post } = await newThinker(world.platform, { instructions: 'One.' });
  await put('/api/agents/thinker', { instructions: 'Two.' });
  await put('/api/agents/thinker', { model: 'openai/other' });

  expect((await get(`${versions}?limit=2`)).body).toMatchObject({
    data: [
      { version: 3, changed: ['model'], is_current: true },
      { version: 2, changed: ['instructions'], is_current: false },
    ],
    ...{ total: 3, limit: 2, offset: 0 },
  });
  expect((await get(`${versions}/2`)).body).toMatchObject({
    version: 2,
    fields: { instructions: 'Two.', model: null },
    compared_to: 1,
    differences: [{ field: 'instructions', before: 'One.', after: 'Two.' }],
  });
  expect((await get(`${versions}/3?compare=1`)).body.differences).toHaveLength(2);

  const restored = await post(`${versions}/1/restore`);
  expect(restored.status).toBe(200);
  expect(restored.body).toMatchObject({ version: 4, instructions: 'One.', model: null });
  expect((await get('/api/agents/thinker')).body).toEqual(restored.body);
});

test('a job has the version with which it last asked a model', async () => {
  const thinker = await newThinker(world.platform, { instructions: 'One.' });
  world.provider.script(answering('Done.'));

  const first = await thinker.task('Think');
  await thinker.put('/api/agents/thinker', { instructions: 'Two.' });
  const second = await thinker.task('Think');

  expect(first.agent_version).toBe(1);
  expect(second.agent_version).toBe(2);
  expect((await thinker.get(`/api/jobs/${first.job_id}`)).body.agent_version).toBe(1);
  expect(world.provider.requests.at(-1)?.system).toContain('Two.');
});

test('a version that a job names is kept beyond the newest thousand', async () => {
  const thinker = await newThinker(world.platform, { instructions: 'One.' });
  world.provider.script(answering('Done.'));
  await thinker.task('Think');
  await thinker.put('/api/agents/thinker', { instructions: 'Two.' });
  await thinker.put('/api/agents/thinker', { instructions: 'Three.' });
  await world.platform.database.write((tx) =>
    tx.kysely
      .updateTable('agents')
      .set({ version: 2_000 })
      .where('organization_id', '=', thinker.organization)
      .where('id', '=', 'thinker')
      .execute(),
  );

  await thinker.put('/api/agents/thinker', { instructions: 'Four.' });

  const { data } = (await thinker.get(versions)).body;
  expect(data.map(({ version }: { version: number }) => version)).toEqual([2_001, 2_000, 1]);
});

test('an unknown agent or version is 404, and an invalid query 400', async () => {
  const { get, post } = await newThinker(world.platform);
  const other = await newTenant(world.platform);

  for (const answer of [
    await get('/api/agents/unknown/versions'),
    await other.get(versions),
    ...(await Promise.all(
      ['2', '0', '-1', '1.5', 'x', '01', '99999999999'].flatMap((n) => [
        get(`${versions}/${n}`),
        post(`${versions}/${n}/restore`),
      ]),
    )),
    await get(`${versions}/1?compare=2`),
  ]) {
    expectRefusal(answer, 404, 'not_found');
  }
  expectInvalid(await get(`${versions}/1?compare=0`), 'compare');
  expectInvalid(await get(`${versions}?limit=0`), 'limit');
});
