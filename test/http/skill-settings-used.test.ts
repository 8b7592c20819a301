/** Settings of skills in every kind of run: tools of models, runs of triggers and schedules, resumed runs. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { manualClock } from '../support/manual-clock.ts';
import { callingTools } from '../support/scripted-provider.ts';
import {
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  thinkersSkills,
  toolNamed,
} from '../support/thinkers.ts';
import { receiverAuthority, startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { resumeUnloaded } from '../support/unloaded.ts';
import { waitFor } from '../support/wait-for.ts';
import { deliveriesOf, newWebhook } from '../support/webhooks.ts';

const clock = manualClock();
const logged: string[] = [];
let receiver: TlsReceiver;
let world: Thinkers;
beforeAll(async () => {
  receiver = await startTlsReceiver();
  world = await startThinkers({
    clock,
    skillsDirs: [...thinkersSkills, join(import.meta.dirname, '../fixtures/skills/settings')],
    environment: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_RETRY_DELAYS: '0' },
    parts: { webhookEgress: { ca: receiverAuthority } },
    log: createLogger('info', { write: (line: string) => void logged.push(line) }),
    executors: 'own',
  });
});
afterAll(async () => {
  await world.stop();
  await receiver.close();
});

const keeper = 'settings/v1.0/keeper';
const waiter = 'settings/v1.0/waiter';
const secret = 'sk-"used"/4567 890';
const leaked = /sk-|4567/;

let thinker: Thinker;
beforeEach(async () => {
  thinker = await newThinker(world.platform, { skills: ['settings/*'], keep_prompts: true });
});

async function put(values: Record<string, string | null>, skill = keeper): Promise<void> {
  const { body } = await thinker.get(`/api/skills/${skill}`);
  const { status, text } = await thinker.put(`/api/skills/${body.id}/config`, values);
  expect(status, text).toBe(200);
}

/** What is kept of what the model was sent. */
async function promptsOf(jobId: string): Promise<string[]> {
  const calls = (await thinker.steps(jobId)).filter(({ kind }) => kind === 'model');
  expect(calls).not.toHaveLength(0);
  const paths = calls.map(({ step }) => `/api/jobs/${jobId}/steps/${step}/prompt`);
  const kept = await Promise.all(paths.map((path) => thinker.get(path)));
  expect(kept.map(({ body }) => body.state)).toEqual(kept.map(() => 'kept'));
  return kept.map(({ text }) => text);
}

/** A generation in which the model calls the keeper; the job, and what the model and its record were told. */
async function called(input: object) {
  const before = world.provider.requests.length;
  world.provider.script(callingTools([{ name: toolNamed(keeper), input }], 'Done.'));
  const job = await thinker.task('Use it');
  const requests = world.provider.requests.slice(before);
  const steps = await thinker.steps(job.job_id);
  return { job, requests, steps, result: requests[1]?.toolResults?.[0] ?? '' };
}

test('a model learns that the setting of a tool is missing, and the run goes on without the tool', async () => {
  const { job, steps, result } = await called({});

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
  expect(result).toContain('needs the setting API_KEY');
  const error = { code: 'missing_credentials', message: expect.stringContaining('API_KEY') };
  expect(steps[1]).toMatchObject({ kind: 'tool', name: keeper, status: 'failed', error });
});

test('a tool of a model gets its settings, and neither the model nor a record gets its secrets', async () => {
  await put({ API_KEY: secret });

  const { job, requests, steps, result } = await called({ say: 'everywhere' });
  const failed = await called({ say: 'error' });

  expect(JSON.parse(result)).toMatchObject({ key: '***', list: ['***'], encoded: '***' });
  expect(steps.filter(({ kind }) => kind === 'tool')).toMatchObject([{ status: 'completed' }]);
  expect(failed.result).toContain('refused: ***');
  const shown = [
    ...[...requests, ...failed.requests].map(({ body }) => JSON.stringify(body)),
    (await thinker.get(`/api/jobs/${job.job_id}/events`)).text,
    (await thinker.get(`/api/jobs/${job.job_id}/steps`)).text,
    ...(await promptsOf(job.job_id)),
    JSON.stringify(await thinker.messages(job.conversation_id)),
    JSON.stringify(await thinker.memories()),
  ].join('\n');
  expect(shown).toContain('the key is ***');
  expect(shown).not.toMatch(leaked);
  expect(logged.join('')).not.toMatch(leaked);
});

test('a person is not asked to approve a tool that cannot start', async () => {
  const { status } = await thinker.put('/api/agents/thinker', { approvals: ['settings/*'] });
  expect(status).toBe(200);

  const { job, result } = await called({});

  expect(job.status).toBe('completed');
  expect(result).toContain('needs the setting API_KEY');
});

test('a resumed run gets the settings of that moment, and its record stays as it was', async () => {
  await put({ API_KEY: secret }, waiter);
  const id = await thinker.start(waiter, {});
  const removed = await thinker.start(waiter, {});
  for (const one of [id, removed]) await thinker.jobIn(one, 'waiting');

  await put({ API_KEY: 'sk-another-4567', REGION: 'us' }, waiter);
  await resumeUnloaded(thinker, id);
  const { body } = await thinker.jobIn(id, 'completed', 'failed');
  await put({ API_KEY: null }, waiter);
  await resumeUnloaded(thinker, removed);

  expect(body).toMatchObject({
    status: 'completed',
    attempt: 1,
    output: {
      first: { length: secret.length, region: 'eu' },
      now: { length: 15, region: 'us' },
      said: 'with ***',
    },
  });
  expect((await thinker.steps(id)).map(({ name }) => name)).toEqual(['use ***', 'go']);
  expect((await thinker.jobIn(removed, 'completed', 'failed')).body).toMatchObject({
    status: 'failed',
    error: { code: 'missing_credentials' },
  });
});

test('runs of triggers and schedules get them too, and no webhook or dead letter tells a secret', async () => {
  await put({ API_KEY: secret });
  receiver.answers({ status: 400 });
  const webhook = await newWebhook(thinker, `${receiver.origin}/used`, {
    events: ['skill.completed', 'skill.failed'],
  });
  const of = { agent_id: 'default', skill_category: 'settings', skill_name: 'keeper' };
  const input = { say: 'everywhere' };
  const trigger = await thinker.post('/api/agent-triggers', { ...of, name: 'Calls' });
  const cron = { cron_expression: '* * * * *', input: { say: 'error' } };
  const schedule = await thinker.post('/api/scheduled-jobs', { ...of, ...cron });
  expect(schedule.status, schedule.text).toBe(201);
  clock.advance(60_000);

  const { body } = await world.platform.request(
    'POST',
    `/api/webhooks/agent/${trigger.body.token}`,
    { body: input },
  );
  const done = await thinker.jobIn(body.job_id, 'completed', 'failed');

  expect(done.body).toMatchObject({ status: 'completed', output: { key: '***' } });
  const failed = await waitFor(
    async () => (await thinker.get('/api/jobs?status=failed')).body.data[0],
    { describe: 'a scheduled run has failed' },
  );
  const job = await thinker.get(`/api/jobs/${failed.job_id}`);
  expect(job.body.error.message).toBe('refused: ***');
  const [one, other] = await receiver.received(2);
  expect(`${one?.body}${other?.body}`).toContain('***');
  const dead = await deliveriesOf(thinker, webhook);
  const told = receiver.requests.map(({ json }) => json);
  expect(JSON.stringify([told, dead, job.body])).not.toMatch(leaked);
});
