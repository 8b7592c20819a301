import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { answering, callingTools } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const wordCount = toolNamed('text/v1.0/word-count');

/** A job of five steps. */
async function fiveSteps() {
  const thinker = await newThinker(world.platform, { skills: ['text/*'] });
  const calls = ['one', 'two', 'three'].map((text) => ({ name: wordCount, input: { text } }));
  world.provider.script(callingTools(calls, 'Three.'));
  const job = await thinker.task('Count');
  const page = (query = '') => thinker.get(`/api/jobs/${job.job_id}/steps${query}`);
  return { thinker, job, page };
}

const unpriced = {
  ...{ cache_read_tokens: null, cache_write_tokens: null, reasoning_tokens: null },
  ...{
    estimated_tokens: 0,
    cost_usd: null,
    estimated_cost_usd: 0,
    price: null,
    rule: null,
    guard: null,
    files: null,
  },
};

describe('GET /api/jobs/:jobId/steps', () => {
  test('lists the steps of a job in order, with their messages and tokens', async () => {
    const { thinker, job, page } = await fiveSteps();

    const { status, body } = await page();

    expect(status).toBe(200);
    expect(body).toMatchObject({ total: 5, limit: 50, offset: 0 });
    expect(body.data[0]).toEqual({
      ...{ step: 1, kind: 'model', name: 'openai/test', turn: 1, status: 'completed' },
      ...{ parent_step_id: null, generation_id: expect.stringMatching(/^[\w-]{22}$/) },
      ...{ error: null, message_id: anId, started_at: aTimestamp, finished_at: aTimestamp },
      prompt_tokens: expect.any(Number),
      completion_tokens: expect.any(Number),
      duration_ms: expect.any(Number),
      ...{ waits_for: null, due_at: null, prompt: 'off', ...unpriced },
    });
    expect(body.data[1]).toEqual({
      ...{ step: 2, kind: 'tool', name: 'text/v1.0/word-count', turn: 1, status: 'completed' },
      ...{ parent_step_id: 1, generation_id: body.data[0].generation_id },
      ...{ error: null, message_id: anId, started_at: aTimestamp, finished_at: aTimestamp },
      ...{ prompt_tokens: null, completion_tokens: null, duration_ms: expect.any(Number) },
      ...{ waits_for: null, due_at: null, prompt: null, ...unpriced },
    });
    const messages = await thinker.messages(job.conversation_id);
    const ids = new Set(messages.map(({ id }: { id: string }) => id));
    for (const step of body.data) expect(ids.has(step.message_id)).toBe(true);
  });

  test('comes in pages', async () => {
    const { page } = await fiveSteps();
    const whole = (await page()).body.data;

    const second = (await page('?limit=2&offset=2')).body;
    const last = (await page('?limit=2&offset=4')).body;
    const beyond = (await page('?offset=5')).body;

    expect(second).toEqual({ data: whole.slice(2, 4), total: 5, limit: 2, offset: 2 });
    expect(last.data).toEqual(whole.slice(4));
    expect(beyond).toMatchObject({ data: [], total: 5 });
    for (const limit of hostileLimits) expectInvalid(await page(`?limit=${limit}`), 'limit');
    for (const offset of hostileOffsets) expectInvalid(await page(`?offset=${offset}`), 'offset');
  });

  test('shows a step under way as active, without an end', async () => {
    const thinker = await newThinker(world.platform);
    const held = Promise.withResolvers<void>();
    const before = world.provider.requests.length;
    world.provider.script(answering('Late.', { until: held.promise }));
    const jobId = await thinker.begin('Wait');
    await world.provider.received(before + 1);

    const steps = await thinker.steps(jobId);
    held.resolve();
    await thinker.jobIn(jobId, 'completed');

    expect(steps).toMatchObject([
      { status: 'active', finished_at: null, duration_ms: null, message_id: null },
    ]);
  });

  test('is empty for a job that calls no model', async () => {
    const { run, get, named } = await newThinker(world.platform);
    const { body: job } = await run('text/v1.0/word-count', { text: 'x' }, named);

    const { body } = await get(`/api/jobs/${job.job_id}/steps`);

    expect(body).toMatchObject({ data: [], total: 0 });
  });

  test('is 404 not_found for an unknown job, or one of another organization', async () => {
    const { thinker, job } = await fiveSteps();
    const stranger = await newThinker(world.platform);

    for (const id of ['no-id', '0198c0de-0000-7000-8000-000000000000']) {
      expectRefusal(await thinker.get(`/api/jobs/${id}/steps`), 404, 'not_found');
    }
    expectRefusal(await stranger.get(`/api/jobs/${job.job_id}/steps`), 404, 'not_found');
  });
});
