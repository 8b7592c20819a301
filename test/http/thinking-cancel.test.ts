import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { acting, gate, play } from '../support/staged.ts';
import {
  newOwnThinker,
  newThinker,
  startThinkers,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const soFar = () => world.provider.requests.length;
const played = toolNamed(play);
const never = new Promise<void>(() => {});

/** Milliseconds within which whatever is under way has to have ended. */
const atOnceMs = 2_000;

describe.each(['openai/test', 'anthropic/test'])(
  'cancelling a job that thinks with %s',
  (model) => {
    const thinker = () => newThinker(world.platform, { model, skills: ['staged/*'] });

    test.each([
      ['before the first byte of an answer', { until: never }],
      [
        'in the middle of an answer',
        { text: 'A long, long story.', hold: { after: 2, until: never } },
      ],
    ])('ends the request to the provider at once: %s', async (_, reply) => {
      const { begin, post, jobIn, steps } = await thinker();
      const index = soFar();
      world.provider.script(() => reply);
      const jobId = await begin('Speak');
      await world.provider.received(index + 1);

      const asked = performance.now();
      await post(`/api/jobs/${jobId}/cancel`);
      const { endedBy } = await world.provider.ended(index);
      const { body: job } = await jobIn(jobId, 'cancelled');

      expect(endedBy).toBe('aborted');
      expect(performance.now() - asked).toBeLessThan(atOnceMs);
      expect(job.error).toMatchObject({ code: 'cancelled' });
      expect(await steps(jobId)).toMatchObject([{ kind: 'model', status: 'interrupted' }]);
      expect(soFar()).toBe(index + 1);
    });

    test('ends the active tool at once, and calls the model no more', async () => {
      const { begin, post, jobIn, steps } = await thinker();
      const index = soFar();
      const held = gate();
      world.provider.script(() => ({
        toolCalls: [
          { name: played, input: acting({ until: held.path }) },
          { name: played, input: { ...acting(), output: 'quick' } },
        ],
      }));
      const jobId = await begin('Play');
      await waitFor(async () => (await steps(jobId))[2]?.status === 'completed', {
        describe: 'the quick tool has ended',
      });

      const asked = performance.now();
      await post(`/api/jobs/${jobId}/cancel`);
      await jobIn(jobId, 'cancelled');

      expect(performance.now() - asked).toBeLessThan(atOnceMs);
      expect(await steps(jobId)).toMatchObject([
        { kind: 'model', status: 'completed' },
        { kind: 'tool', status: 'interrupted' },
        { kind: 'tool', status: 'completed' },
      ]);
      expect(soFar()).toBe(index + 1);
    });

    test('ends the wait for a provider that is to be left alone', async () => {
      const { begin, post, jobIn } = await newOwnThinker(world, { model });
      const index = soFar();
      world.provider.script(() => ({ fault: { status: 429, headers: { 'retry-after': '15' } } }));
      const jobId = await begin('Speak');
      await world.provider.ended(index);

      const asked = performance.now();
      await post(`/api/jobs/${jobId}/cancel`);
      await jobIn(jobId, 'cancelled');

      expect(performance.now() - asked).toBeLessThan(atOnceMs);
      expect(soFar()).toBe(index + 1);
    });
  },
);

describe("a skill's time", () => {
  test('ends the request to the provider when it is over', async () => {
    const { run, named, steps } = await newThinker(world.platform);
    const index = soFar();
    world.provider.script(() => ({ text: 'Slow.', until: never }));

    const { body: job } = await run('thinking/v1.0/brief', {}, named);

    expect(job).toMatchObject({ status: 'failed', error: { code: 'skill_timeout' } });
    expect((await world.provider.ended(index)).endedBy).toBe('aborted');
    expect(await steps(job.job_id)).toMatchObject([{ status: 'interrupted' }]);
  });

  test('ends a tool that runs when it is over', async () => {
    const { run, named, steps } = await newThinker(world.platform, { skills: ['staged/*'] });
    const held = gate();
    world.provider.script(
      inTurn({ toolCalls: [{ name: played, input: acting({ until: held.path }) }] }, { text: '!' }),
    );

    const { body: job } = await run('thinking/v1.0/brief', {}, named);

    expect(job).toMatchObject({ status: 'failed', error: { code: 'skill_timeout' } });
    expect(await steps(job.job_id)).toMatchObject([
      { kind: 'model', status: 'completed' },
      { kind: 'tool', status: 'interrupted' },
    ]);
  });
});

test('a job that is retried after its cancellation starts from the beginning', async () => {
  const { begin, post, jobIn } = await newThinker(world.platform);
  const index = soFar();
  world.provider.script(() => ({ until: never }));
  const jobId = await begin('Speak');
  await world.provider.received(index + 1);
  await post(`/api/jobs/${jobId}/cancel`);
  await jobIn(jobId, 'cancelled');
  world.provider.script(answering('Here I am.'));

  const { body: retried } = await post(`/api/jobs/${jobId}/retry`);
  const { body: job } = await jobIn(retried.job_id, 'completed', 'failed');

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Here I am.' } });
  expect(job.conversation_id).not.toBe((await jobIn(jobId, 'cancelled')).body.conversation_id);
});
