import { ProtocolError } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { questionsInFault, questionsOf } from './questions.ts';

/** An input that counts how often it is written as JSON. */
function countedInput() {
  const counted = { writes: 0, toJSON: () => (counted.writes += 1) };
  return counted;
}
const many = Array.from({ length: 1_000 }, (_, i) => [`q${i}`, i] as const);
const tooMany = 'The service asks more than 20 questions at once';

test('a result with very many questions is refused before any is made', () => {
  const input = countedInput();
  const ask = { method: 'elicitation/create', params: { message: 'Which?' } };
  const inputRequests = Object.fromEntries(many.map(([key]) => [key, ask]));
  const result = { resultType: 'input_required', inputRequests } as never;
  expect(() => questionsOf(result, { service: 's', tool: 't', input })).toThrow(tooMany);
  expect(input.writes).toBe(0);
});

test('a refusal with very many pages to open is refused before any question is made', () => {
  const input = countedInput();
  const elicitations = many.map(() => ({ message: 'Open it', url: 'https://a.example' }));
  const error = new ProtocolError(-32_042, 'Open pages', { elicitations });
  expect(() => questionsInFault(error, { service: 's', tool: 't', input })).toThrow(tooMany);
  expect(input.writes).toBe(0);
});
