import { expect, test } from 'vitest';
import { shownAddress, whyNotPlain, whyNotPlainArgs } from './plain-address.ts';

test.each([
  ['https://mcp.example', 'https://mcp.example/'],
  ['https://mcp.example:8443/mcp', 'https://mcp.example:8443/mcp'],
  ['https://mcp.example/mcp/', 'https://mcp.example/mcp/'],
  ['https://mcp.example/api/v1/mcp', 'https://mcp.example/api/v1/mcp'],
  ['https://orders.example/v3/api-docs', 'https://orders.example/v3/api-docs'],
  [
    'https://orders.example/swagger/v1/swagger.json',
    'https://orders.example/swagger/v1/swagger.json',
  ],
  // A path with words of its own may hold a secret, so it is not shown.
  ['https://mcp.example/tools/order-management-api/sse', 'https://mcp.example'],
  ['https://mcp.example/mcp2', 'https://mcp.example'],
  ['https://orders.example/v3.1/petstore.yaml', 'https://orders.example'],
])('%s is plain, and is shown as %j', (address, shown) => {
  expect(whyNotPlain('url', address)).toBeNull();
  expect(shownAddress(address)).toBe(shown);
});

test.each([
  ['https://mcp.example/mcp/k3y4u', 'https://mcp.example'],
  ['https://mcp.example/mcp/kAbCd', 'https://mcp.example'],
  ['https://mcp.example/mcp/kqzvwpxmnrtb-shdlkjfghqab', 'https://mcp.example'],
  ['https://mcp.example/services/T024BE7LD', 'https://mcp.example'],
  ['https://mcp.example/0f8b41fe-6c1e-4a3e-9a3b-3f3b5a9c0d11/sse', 'https://mcp.example'],
  ['https://mcp.example/mcp%2Fa', 'https://mcp.example'],
  ['https://mcp.example/mcp;a', 'https://mcp.example'],
  ['https://mcp.example/v100', 'https://mcp.example'],
  ['https://mcp.example/a/b/c/d/e/f/g', 'https://mcp.example'],
  ['https://mcp.example/mcp?a', 'https://mcp.example/mcp'],
  ['https://mcp.example/mcp?', 'https://mcp.example/mcp'],
  ['https://mcp.example/mcp#a', 'https://mcp.example/mcp'],
  ['https://a@mcp.example/mcp', 'https://mcp.example/mcp'],
  ['https://a:b@mcp.example/mcp', 'https://mcp.example/mcp'],
  ['no address', ''],
])('%s may hold a secret, and is shown as %j', (address, shown) => {
  expect(whyNotPlain('url', address)).toContain('url');
  expect(shownAddress(address)).toBe(shown);
});

test.each([
  [[]],
  [['/srv/mcp_1/server.mjs', 'stdio']],
  [['-y', '@modelcontextprotocol/server-everything']],
  [['-y', '@upstash/context7-mcp@1.2.3', '--read-only']],
  [['-y', 'mcp-server@latest', '/srv/data', '--port', '3001']],
  [['mcp-remote', 'https://mcp.example/mcp']],
])('the arguments %j are plain', (args) => {
  expect(whyNotPlainArgs(args)).toBeNull();
});

test.each([
  [['-psecret']],
  [['-p', 'secret']],
  [['--token', 'swordfish']],
  [['--passphrase', 'swordfish']],
  [['--pin', '12345']],
  [['--api-key', 'a']],
  [['--token=abc']],
  [['sk-12345']],
  [['ghp_abcdefghijklmnop']],
  [['eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln']],
  [['postgres://user:password@db.example/a']],
  [['https://mcp.example/mcp/k3y4u']],
  [['{"token":"a"}']],
  [['token=a.js']],
  [['kqzvwpxmnrtb']],
  [['']],
])('the arguments %j may hold a secret', (args) => {
  expect(whyNotPlainArgs(['server.mjs', ...args])).toContain('args');
});
