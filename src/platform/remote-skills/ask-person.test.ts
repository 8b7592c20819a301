import { expect, test } from 'vitest';
import { type Asker, answersTo, askHeld } from './ask-person.ts';
import { HeldQuestions } from './held-questions.ts';
import { type PersonQuestion, RemoteQuestions } from './remote-kind.ts';

const fields = { type: 'object', properties: { size: { type: 'string' } } };
const question = (more: Partial<PersonQuestion> = {}): PersonQuestion => ({
  ...{ key: 'size', message: 'Which size?', fields },
  ...{ context: { service: 'shop', tool: 'order' } },
  ...more,
});

/** An asker whose person decides like this, and the waits that it asked for. */
function askerWith(value: object) {
  const waits: Record<string, unknown>[] = [];
  const said: string[] = [];
  const asker: Asker = {
    ...{ tool: 'order', secrets: ['the-token-of-it'], asked: new Map() },
    handlers: {
      async onAsk(_kind, payload) {
        waits.push(payload as Record<string, unknown>);
        return { value };
      },
    },
    signal: new AbortController().signal,
    say: (line) => said.push(line),
    hold: () => () => {},
  };
  return { asker, waits, said };
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
  const { asker } = askerWith(value);
  expect(await askHeld(asker, question())).toEqual(answer);
  const questions = new RemoteQuestions([question()], null);
  expect(await answersTo(asker, questions)).toEqual({ size: answer });
});

test('the title is cut, and neither it, the message nor the form has secrets or invisible characters', async () => {
  const { asker, waits } = askerWith({ approved: true, by });
  const message = `Use the-token\u200b-of-it\u200b? ${'x'.repeat(5_000)}`;
  const size = { type: 'string', title: 'Size\u202e', description: 'the-\u200btoken-of-it' };
  const choice = { ...size, enum: ['s\u200d', 'l'], enumNames: ['S\u200b', 'L'] };
  const properties = { title: size, choice };
  await askHeld(asker, question({ message, fields: { type: 'object', properties } }));
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

test('a held call asks 20 questions at most, and equal ones are told apart', async () => {
  const { asker, waits, said } = askerWith({ approved: true, by });
  for (let i = 0; i < 20; i++) await askHeld(asker, question());
  expect(waits.map(({ nth }) => nth)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  expect(await askHeld(asker, question())).toEqual({ action: 'decline' });
  expect(waits).toHaveLength(20);
  expect(said).toEqual([
    'A question of the service was declined. It has asked 20 questions in this call',
  ]);
});

test('an organization holds half of what others leave free; a question beyond it is cancelled', async () => {
  const held = new HeldQuestions();
  const decided = Promise.withResolvers<object>();
  const asking = (source: string, organization: string) => {
    const { asker, said } = askerWith({});
    const handlers = { onAsk: () => decided.promise };
    const hold = () => held.hold(source, organization);
    return { answer: askHeld({ ...asker, handlers, hold }, question()), said };
  };
  const asked = ['a', 'b', 'c', 'd'].flatMap((source) =>
    Array.from({ length: 50 }, () => asking(source, 'acme').answer),
  );
  const ofSource = asking('a', 'acme');
  const ofOther = asking('e', 'acme');
  expect(await ofSource.answer).toEqual({ action: 'cancel' });
  expect(ofSource.said).toEqual([
    'A question of the service was cancelled. 50 calls of it wait for a person already',
  ]);
  expect(await ofOther.answer).toEqual({ action: 'cancel' });
  expect(ofOther.said[0]).toContain('200 calls wait for a person already');
  asked.push(...Array.from({ length: 25 }, () => asking('a', 'globex').answer));
  expect(await asking('a', 'globex').answer).toEqual({ action: 'cancel' });
  asked.push(asking('a', 'initech').answer);
  decided.resolve({ value: { approved: true, by } });
  await Promise.all(asked);
  expect(await asking('a', 'acme').answer).toMatchObject({ action: 'accept' });
});
