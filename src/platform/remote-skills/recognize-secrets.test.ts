import { expect, test } from 'vitest';
import { secretsInArgs, secretsInQuery, secretsInUrl } from './recognize-secrets.ts';

const distinct = (texts: readonly string[]) => [...new Set(texts)].filter((text) => text !== '');

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
  expect(distinct(secretsInQuery(`?${query}`))).toEqual([]);
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
  expect(distinct(secretsInQuery(`?${query}`))).toEqual(secrets);
});

test('a secret is found as it stands in the query, and decoded', () => {
  const query = '?version=2025-06-18&api_key=sk%2Dlive+0123%2f456789&mode=read-only';
  expect(secretsInQuery(query)).toEqual(['sk%2Dlive+0123%2f456789', 'sk-live 0123/456789']);
});

test.each([
  [['--token=a'], ['a']],
  [['--api-key', 'a'], ['a']],
  [['--token-value', 'a'], ['a']],
  [['--passphrase', 'a'], ['a']],
  [['--pin', '12345'], ['12345']],
  [['DB_PASSWORD_MAIN=a'], ['a']],
  [['--login', 'alice:a'], ['a']],
  [
    ['--header', 'Authorization: Bearer a'],
    ['Bearer a', 'a'],
  ],
  [['--header', 'Authorization:a'], ['a']],
  [['API_KEY=a', 'node', 'server.js'], ['a']],
  [['postgresql://user:p%40w@db.example/main'], ['p%40w', 'p@w']],
  [['https://mcp.example/?api_key=a'], ['a']],
  [['--url=https://mcp.example/?api_key=a'], ['a']],
  [['ghp_1234567890abcdefghij'], ['ghp_1234567890abcdefghij']],
])('the secrets of the arguments %j are %j', (args, secrets) => {
  expect(distinct(secretsInArgs(args))).toEqual(secrets);
});

test.each([
  [[]],
  [['-y', '@modelcontextprotocol/server-everything']],
  [['server.js', '--port', '3001', '--verbose']],
  [['--token', '--verbose']],
  [['--user', 'developer', '--keyspace', 'customers', '--account=production']],
  [['/srv/data', 'C:\\data', '--root=/srv/data']],
  [['mcp-remote', 'https://mcp.example/mcp']],
  [['-e', 'setInterval(() => {}, 1000)']],
])('the arguments %j have no secret', (args) => {
  expect(distinct(secretsInArgs(args))).toEqual([]);
});

test.each([
  [
    'https://mcp.example/s/b64%2Babcdef0123456789/mcp',
    ['b64%2Babcdef0123456789', 'b64+abcdef0123456789'],
  ],
  ['https://hooks.example/T0/kqzvwpxmnrtbshdlkjfghq', ['kqzvwpxmnrtbshdlkjfghq']],
  // Results repeat ids, and words are no secrets.
  ['https://mcp.example/acme-2024/order-management-api/v2', []],
])('the secrets of the address %s are %j', (address, secrets) => {
  expect(distinct(secretsInUrl(address))).toEqual(secrets);
});
