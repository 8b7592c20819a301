import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { RunRequest } from '../../core/executors/run.ts';
import { aborted } from '../../kernel/aborted.ts';
import { answersTo, askHeld } from './ask-person.ts';
import type { RemoteSkill } from './definitions.ts';
import { HeldQuestions } from './held-questions.ts';
import { type PersonQuestion, RemoteQuestions } from './remote-kind.ts';
import { RemoteRun } from './remote-run.ts';

const fields = { type: 'object', properties: { size: { type: 'string' } } };
const question = (more: Partial<PersonQuestion> = {}): PersonQuestion => ({
  ...{ key: 'size', message: 'Which size?', fields },
  ...{ context: { service: 'shop', tool: 'order' } },
  ...more,
});

const request = (organizationId: string): RunRequest => ({
  skill: 'mcp-shop/v1.0/order',
  input: '{}',
  timeoutMs: 1_000,
  context: {
    ...{ jobId: 'job', agentId: 'default', conversationId: 'conversation' },
    ...{ organizationId, attempt: 1, now: 0 },
  },
});

/** A run whose person decides like this, with its waits and its log. */
function runWith(
  decision: object | Promise<object>,
  { held = new HeldQuestions(), source = 'source', organization = 'acme' } = {},
) {
  const waits: Record<string, unknown>[] = [];
  const logged: string[] = [];
  const handlers = {
    async onAsk(_kind: string, payload: unknown) {
      waits.push(payload as Record<string, unknown>);
      return { value: await decision };
    },
    onReport(report: object) {
      if ('message' in report) logged.push(String(report.message));
    },
  };
  const run = new RemoteRun(request(organization), handlers, held, source);
  run.skill = { tool: 'order' } as RemoteSkill;
  run.secrets = ['the-token-of-it'];
  return { run, waits, logged };
}

const by = { kind: 'api_key', id: 'k' };

test.each([
  [
    { approved: true, by, reason: null, answer: { size: 's' } },
    { action: 'accept', content: { size: 's' } },
  ],
  [
    { approved: true, by, reason: null },
    { action: 'accept', content: {} },
  ],
  [{ approved: false, by, reason: 'No' }, { action: 'decline' }],
  [{ approved: false, by: null, reason: 'expired' }, { action: 'cancel' }],
])('the decision %j is the answer %j', async (value, answer) => {
  const { run } = runWith(value);
  expect(await askHeld(run, question())).toEqual(answer);
  const questions = new RemoteQuestions([question()], null);
  expect(await answersTo(run, questions)).toEqual({ size: answer });
});

test('the title is cut, and neither it, the message nor the form has secrets or invisible characters', async () => {
  const { run, waits } = runWith({ approved: true, by });
  const message = `Use the-token\u200b-of-it\u200b? ${'x'.repeat(5_000)}`;
  const size = { type: 'string', title: 'Size\u202e', description: 'the-\u200btoken-of-it' };
  const choice = { ...size, enum: ['s\u200d', 'l'], enumNames: ['S\u200b', 'L'] };
  const properties = { title: size, choice };
  await askHeld(run, question({ message, fields: { type: 'object', properties } }));
  const {
    title,
    details,
    fields: form,
  } = waits[0] as {
    title: string;
    details: { message: string };
    fields: { properties: object };
  };
  expect(form.properties).toEqual({
    title: { type: 'string', title: 'Size', description: '***' },
    choice: {
      ...{ type: 'string', title: 'Size', description: '***' },
      ...{ enum: ['s\u200d', 'l'], enumNames: ['S', 'L'] },
    },
  });
  expect(title).toMatch(/^shop asks: Use \*\*\*\? x+…$/);
  expect(title.length).toBe(200);
  expect(details.message.length).toBeLessThanOrEqual(4_000);
  expect(details.message).toContain('Use ***? x');
});

test('a held call asks 20 questions at most, and equal ones are numbered', async () => {
  const { run, waits, logged } = runWith({ approved: true, by });
  for (let i = 0; i < 20; i++) await askHeld(run, question());
  expect(waits.map(({ nth }) => nth)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  expect(await askHeld(run, question())).toEqual({ action: 'decline' });
  expect(waits).toHaveLength(20);
  expect(logged).toEqual([
    'A question of the service was declined. It has asked 20 questions in this call',
  ]);
});

test('a question ends with its call, so that the time limit goes on', async () => {
  const limitMs = 1;
  const asked = Promise.withResolvers<AbortSignal>();
  const handlers = {
    onAsk(_kind: string, _payload: unknown, signal: AbortSignal) {
      asked.resolve(signal);
      return aborted(signal);
    },
    onReport() {},
  };
  const limited = { ...request('acme'), timeoutMs: limitMs };
  const run = new RemoteRun(limited, handlers, new HeldQuestions(), 'source');
  const asking = run.ask(question()).catch(() => {});
  const signal = await asked.promise;

  run.endCall();
  await asking;

  expect(signal.aborted).toBe(true);
  await once(run.timeout.signal, 'abort');
});

test('an organization holds half of what others leave free; a question beyond it is cancelled', async () => {
  const held = new HeldQuestions();
  const decided = Promise.withResolvers<object>();
  const asking = (source: string, organization: string) => {
    const { run, logged } = runWith(decided.promise, { held, source, organization });
    return { answer: askHeld(run, question()), logged };
  };
  const asked = ['a', 'b', 'c', 'd'].flatMap((source) =>
    Array.from({ length: 50 }, () => asking(source, 'acme').answer),
  );
  const ofSource = asking('a', 'acme');
  const ofOther = asking('e', 'acme');
  expect(await ofSource.answer).toEqual({ action: 'cancel' });
  expect(ofSource.logged).toEqual([
    'A question of the service was cancelled. 50 calls of it wait for a person already',
  ]);
  expect(await ofOther.answer).toEqual({ action: 'cancel' });
  expect(ofOther.logged[0]).toContain('200 calls wait for a person already');
  asked.push(...Array.from({ length: 25 }, () => asking('a', 'globex').answer));
  expect(await asking('a', 'globex').answer).toEqual({ action: 'cancel' });
  asked.push(asking('a', 'initech').answer);
  decided.resolve({ approved: true, by });
  await Promise.all(asked);
  expect(await asking('a', 'acme').answer).toMatchObject({ action: 'accept' });
});
