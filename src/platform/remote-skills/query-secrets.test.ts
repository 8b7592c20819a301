import { expect, test } from 'vitest';
import { hasSecretInArgs, secretsInQuery } from './query-secrets.ts';

test.each([
  'version=2025-06-18',
  'v=20250618',
  'since=2025-06-18T09:30:00Z',
  'since=2025-06-18T09%3A30%3A00.000%2B02:00',
  'mode=read-only',
  'environment=production',
  'features=Files,Issues,documentation',
  'q=',
  '',
])('of %s nothing is a secret', (query) => {
  expect(secretsInQuery(`?${query}`).filter((text) => text !== '')).toEqual([]);
});

test.each([
  ['api_key=production', ['production']],
  ['exaApiKey=words-alone', ['words-alone']],
  ['X-Amz-Signature=signature', ['signature']],
  ['api%5Fkey=abcdefgh', ['abcdefgh']],
  ['pass=2025-06-18', ['2025-06-18']],
  // What tells by neither its name nor its form.
  ['k=production', ['production']],
  ['production', ['production']],
  ['customer=1234567890', ['1234567890']],
  ['profile=0b5f3c1e-90aa-4a57', ['0b5f3c1e-90aa-4a57']],
  ['project=kqzvwpxmnrtbshd', ['kqzvwpxmnrtbshd']],
  ['project=kaQeLoWaZiMuRe', ['kaQeLoWaZiMuRe']],
  ['to=https://example.com', ['https://example.com']],
  ['on=2025-99-99', ['2025-99-99']],
])('of %s the value is', (query, secrets) => {
  expect([...new Set(secretsInQuery(`?${query}`))]).toEqual(secrets);
});

test('a secret is found as it stands in the query, and decoded', () => {
  const query = '?version=2025-06-18&api_key=sk%2Dlive+0123%2f456789&mode=read-only';
  expect(secretsInQuery(query)).toEqual(['sk%2Dlive+0123%2f456789', 'sk-live 0123/456789']);
});

test.each([
  [['--token=a']],
  [['--api-key', 'a']],
  [['--header', 'Authorization: Bearer a']],
  [['--header', 'Authorization:a']],
  [['API_KEY=a', 'node', 'server.js']],
  [['postgresql://user:pw@db.example/main']],
  [['https://mcp.example/?api_key=a']],
  [['--url=https://mcp.example/?api_key=a']],
  [['ghp_1234567890abcdefghij']],
])('the arguments %j have a secret', (args) => {
  expect(hasSecretInArgs(args)).toBe(true);
});

test.each([
  [[]],
  [['-y', '@modelcontextprotocol/server-everything']],
  [['server.js', '--port', '3001', '--verbose']],
  [['--token', '--verbose']],
  [['/srv/data', 'C:\\data', '--root=/srv/data']],
  [['mcp-remote', 'https://mcp.example/mcp']],
  [['-e', 'setInterval(() => {}, 1000)']],
])('the arguments %j have none', (args) => {
  expect(hasSecretInArgs(args)).toBe(false);
});
