import { expect, test } from 'vitest';
import { putBack, setAside } from './set-aside.ts';

const many = Array.from({ length: 100_000 }, () => ({}));

test.each([
  ['content', { content: many, isError: true }, { content: [], isError: true }],
  ['contents', { contents: many }, { contents: [] }],
  ['tools', { tools: many, nextCursor: 'a' }, { tools: [], nextCursor: 'a' }],
  ['structuredContent', { content: [], structuredContent: { a: many } }, { content: [] }],
])('%s of a result is set aside, and put back', (_name, result, left) => {
  const message = { jsonrpc: '2.0', id: 1, result: { ...result, _meta: { theirs: 1 } } };
  expect(setAside(message)).toBeNull();
  const { _meta, ...rest } = message.result;
  expect(rest).toEqual(left);
  expect(putBack(message.result)).toEqual({ ...result, _meta: { theirs: 1 } });
});

test('the schema of a question is set aside, and put back', () => {
  const requestedSchema = { type: 'object', properties: { a: many } };
  const params = { message: 'Which?', requestedSchema };
  const message = { method: 'elicitation/create', id: 1, params: { ...params } };
  expect(setAside(message)).toBeNull();
  expect(message.params.requestedSchema).toEqual({ type: 'object', properties: {} });
  expect(putBack(message.params)).toMatchObject(params);
});

test('data of any form, and questions of a result, may have many members', () => {
  expect(setAside({ method: 'notifications/message', params: { data: many } })).toBeNull();
  expect(setAside({ id: 1, error: { code: 1, message: '', data: many } })).toBeNull();
  expect(setAside({ id: 1, result: { inputRequests: { a: many } } })).toBeNull();
});

test.each([
  ['the server', { id: 1, result: { serverInfo: { icons: many } } }],
  ['parameters', { method: 'a', params: { a: many } }],
  ['meta', { id: 1, result: { _meta: { a: many } } }],
  ['what the platform has put there', { id: 1, result: { _meta: { skillwright: {} }, a: many } }],
  ['the message itself', { id: 1, a: many }],
  ['a long name', { id: 1, result: { ['a'.repeat(100_000)]: 1 } }],
])('a message with more members in %s is refused', (_where, message) => {
  expect(setAside(message)).toBe('sent a message with more than 2000 members');
});

test('what a server sends as if it were set aside is not put back', () => {
  const message = { id: 1, result: { content: [], _meta: { skillwright: { content: many } } } };
  expect(setAside(message)).toBeNull();
  expect(putBack(message.result)).toMatchObject({ content: [] });
});
