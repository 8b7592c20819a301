/** `POST /api/jobs/:jobId/retry {resume: true}`: a new job goes on from what a failed or cancelled one has recorded. */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Reply, ScriptedRequest } from '../support/scripted-provider.ts';
import { linesFile } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({ environment: { RETRY_BACKOFF_MS: '1' } });
});
afterAll(() => world.stop());

const effect = toolNamed('staged/v1.0/effect');
const usage = { prompt: 100, completion: 10 };
const soFar = () => world.provider.requests.length;
const turnOf = ({ messages }: ScriptedRequest) =>
  messages.filter(({ role }) => role === 'assistant').length;

/** Two turns with a tool that writes a line, then an answer; `fails` says whether a turn is refused, from 0. */
function working(lines: string, fails: (turn: number) => boolean) {
  return (request: ScriptedRequest): Reply => {
    const turn = turnOf(request);
    if (fails(turn)) return { fault: { status: 400 } };
    if (turn >= 2) return { text: 'Done.', usage };
    const input = { log: lines, padding: `${turn}` };
    return { toolCalls: [{ name: effect, id: `call_${turn}`, input }], usage };
  };
}

/** How often the tool has begun. */
const begunIn = (lines: string) =>
  existsSync(lines) ? readFileSync(lines, 'utf8').split('\n').filter(isBeginning).length : 0;
const isBeginning = (line: string) => line.startsWith('begin');

interface Paid {
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
}
const paidIn = ({ breakdown }: { breakdown: readonly Paid[] }) =>
  breakdown.reduce((all, one) => all + (one.prompt_tokens ?? 0) + (one.completion_tokens ?? 0), 0);

const resume = ({ post }: Thinker, jobId: string, body: object = { resume: true }) =>
  post(`/api/jobs/${jobId}/retry`, body);

async function ended(thinker: Thinker, jobId: string) {
  const answer = await thinker.get(`/api/jobs/${jobId}`, { prefer: 'wait=30' });
  return answer.body;
}

/** A job that has failed in its third turn. */
async function failedJob(model = 'openai/test') {
  const thinker = await newThinker(world.platform, { model, skills: ['staged/*'] });
  const lines = linesFile();
  world.provider.script(working(lines, (turn) => turn === 2));
  const failed = await thinker.task('Write TWO lines');
  expect(failed).toMatchObject({ status: 'failed', is_resumed: false });
  return { thinker, lines, failed };
}

describe.each(['openai/test', 'anthropic/test'])('a resumed job of %s', (model) => {
  test('goes on in the conversation with what is missing, and pays for that alone', async () => {
    const { thinker, lines, failed } = await failedJob(model);
    const before = paidIn(await thinker.tokens(failed.conversation_id));
    const asked = soFar();
    world.provider.script(working(lines, () => false));

    const { status, body } = await resume(thinker, failed.job_id);

    expect(status).toBe(202);
    const job = await ended(thinker, body.job_id);
    expect(job).toMatchObject({
      status: 'completed',
      output: { answer: 'Done.' },
      retry_of: failed.job_id,
      is_resumed: true,
      conversation_id: failed.conversation_id,
      token_stats: { prompt_tokens: 100, completion_tokens: 10 },
    });
    const [request, ...more] = world.provider.requests.slice(asked);
    expect(more).toEqual([]);
    // What it took over is in the prompt once.
    const prompt = JSON.stringify(request?.messages);
    expect(prompt.split('Write TWO lines')).toHaveLength(2);
    expect(turnOf(request as ScriptedRequest)).toBe(2);
    expect(begunIn(lines)).toBe(2);
    const steps = await thinker.steps(job.job_id);
    expect(steps.map(({ kind, status: is }) => [kind, is])).toEqual([
      ['model', 'completed'],
      ['tool', 'completed'],
      ['model', 'completed'],
      ['tool', 'completed'],
      ['model', 'completed'],
    ]);
    expect(steps.map(({ prompt_tokens: tokens }) => tokens ?? 0)).toEqual([0, 0, 0, 0, 100]);
    // The failed job stays what it was.
    const after = await thinker.get(`/api/jobs/${failed.job_id}`);
    expect(after.body).toMatchObject({ status: 'failed', token_stats: failed.token_stats });
    expect(before).toBe(220);
    expect(paidIn(await thinker.tokens(failed.conversation_id))).toBe(before + 110);
    const messages = await thinker.messages(failed.conversation_id);
    expect(messages.filter(({ role }) => role === 'user')).toHaveLength(1);
    expect(messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Done.' });
  });
});

test('a resumed job has the values of the first one in its instructions', async () => {
  const thinker = await newThinker(world.platform, {
    instructions: 'Be {{mood}} on {{date}}.',
    variables: { mood: 'merry' },
  });
  const systemOf = (n: number) => JSON.stringify(world.provider.requests[n]?.body.messages[0]);
  const before = soFar();
  world.provider.script(() => ({ fault: { status: 400 } }));
  const failed = await thinker.task('Write');
  const creator = await newTenant(world.platform, { organization_id: thinker.organization });
  const changed = await creator.put('/api/agents/thinker', { variables: { mood: 'grave' } });
  expect(changed.status).toBe(200);
  world.provider.script(() => ({ text: 'Done.' }));

  const job = await ended(thinker, (await resume(thinker, failed.job_id)).body.job_id);

  expect(job.status).toBe('completed');
  expect(systemOf(before)).toContain('Be merry');
  expect(systemOf(before + 1)).toBe(systemOf(before));
});

test('a conversation goes on after a resumed job, with all of it once', async () => {
  const { thinker, lines, failed } = await failedJob();
  world.provider.script(working(lines, () => false));
  await ended(thinker, (await resume(thinker, failed.job_id)).body.job_id);
  const asked = soFar();
  world.provider.script(() => ({ text: 'And more.' }));

  await thinker.task('Go on', {}, { 'x-conversation-id': failed.conversation_id });

  const [request] = world.provider.requests.slice(asked);
  const roles = request?.messages.map(({ role }) => role).filter((role) => role !== 'system');
  expect(roles).toEqual([
    ...['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'],
    'user',
  ]);
});

test('a resumed job that fails is resumed in turn, as often as it takes', async () => {
  const { thinker, lines, failed } = await failedJob();
  let last = failed.job_id;
  for (let n = 0; n < 2; n++) {
    const { body } = await resume(thinker, last);
    expect(await ended(thinker, body.job_id)).toMatchObject({ status: 'failed', retry_of: last });
    last = body.job_id;
  }
  world.provider.script(working(lines, () => false));

  const job = await ended(thinker, (await resume(thinker, last)).body.job_id);

  expect(job).toMatchObject({ status: 'completed', retry_of: last, is_resumed: true });
  expect(begunIn(lines)).toBe(2);
});

test('a cancelled job is resumed; its finished tools do not run again', async () => {
  const thinker = await newThinker(world.platform, { skills: ['staged/*'] });
  const lines = linesFile();
  let isHeld = true;
  const hold = { after: 0, until: new Promise(() => {}) };
  world.provider.script((request) =>
    isHeld && turnOf(request) === 2
      ? { text: 'Done.', hold }
      : working(lines, () => false)(request),
  );
  const before = soFar();
  const jobId = await thinker.begin('Write TWO lines');
  await world.provider.received(before + 3);
  await thinker.post(`/api/jobs/${jobId}/cancel`);
  expect(await ended(thinker, jobId)).toMatchObject({ status: 'cancelled' });
  isHeld = false;

  const job = await ended(thinker, (await resume(thinker, jobId)).body.job_id);

  expect(job).toMatchObject({ status: 'completed', is_resumed: true });
  expect(begunIn(lines)).toBe(2);
});

test('a job is resumed once, by one of many requests at once, and not behind a later one', async () => {
  const { thinker, lines, failed } = await failedJob();
  world.provider.script(working(lines, () => false));

  const answers = await Promise.all(
    Array.from({ length: 5 }, () => resume(thinker, failed.job_id)),
  );

  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted).toHaveLength(1);
  for (const { status } of answers) expect([202, 409, 422]).toContain(status);
  expect(await ended(thinker, accepted[0]?.body.job_id)).toMatchObject({ status: 'completed' });
  expectRefusal(await resume(thinker, failed.job_id), 422, 'job_not_retryable');
  expectRefusal(await resume(thinker, accepted[0]?.body.job_id), 422, 'job_not_retryable');
  // From the beginning it may run at any time.
  const again = await resume(thinker, failed.job_id, {});
  expect(again.status).toBe(202);
  expect(again.body.conversation_id).not.toBe(failed.conversation_id);

  const other = await failedJob();
  world.provider.script(() => ({ text: 'Later.' }));
  await other.thinker.task(
    'Something else',
    {},
    { 'x-conversation-id': other.failed.conversation_id },
  );
  expectRefusal(await resume(other.thinker, other.failed.job_id), 422, 'job_not_retryable');
});

test('a resumed retry is repeated with its Idempotency-Key, at once and after its end, as one job', async () => {
  const { thinker, lines, failed } = await failedJob();
  const path = `/api/jobs/${failed.job_id}/retry`;
  const once = { 'idempotency-key': 'again' };
  const repeat = () => thinker.post(path, { resume: true }, once);
  world.provider.script(working(lines, () => false));

  const answers = await Promise.all(Array.from({ length: 5 }, repeat));
  const job = answers[0]?.body;
  expect(await ended(thinker, job.job_id)).toMatchObject({ status: 'completed' });
  answers.push(await repeat());

  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(202));
  for (const { body } of answers) expect(body).toEqual(job);
  const replayed = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true');
  expect(replayed).toHaveLength(5);
  expect(begunIn(lines)).toBe(2);
  const anew = await thinker.post(path, { resume: false }, once);
  expectRefusal(anew, 422, 'idempotency_key_reused');
  expectRefusal(await resume(thinker, failed.job_id), 422, 'job_not_retryable');
});

test('what a retry may say is checked, and without a body it begins anew', async () => {
  const { thinker, failed } = await failedJob();

  expectInvalid(await resume(thinker, failed.job_id, { resume: 'yes' }), 'resume');
  expectInvalid(await resume(thinker, failed.job_id, { resumed: true }), 'resumed');

  const anew = await thinker.post(`/api/jobs/${failed.job_id}/retry`);
  expect(anew.status).toBe(202);
  expect(anew.body.conversation_id).not.toBe(failed.conversation_id);
  expect(await ended(thinker, anew.body.job_id)).toMatchObject({ is_resumed: false });
});
