import { expect, test } from 'vitest';
import { shownAddress, whyNotPlain, whyNotPlainArgs } from './plain-address.ts';

test.each([
  'https://mcp.example',
  'https://mcp.example/',
  'https://mcp.example:8443/mcp',
  'https://mcp.example/mcp/',
  'https://mcp.example/api/v1/mcp',
  'https://mcp.example/tools/echo-server/sse',
  'https://orders.example/openapi.json',
  'https://orders.example/petstore.yaml',
  'https://orders.example/v3/api-docs',
  'https://orders.example/swagger/v1/swagger.json',
])('%s is plain', (address) => {
  expect(whyNotPlain('url', address)).toBeNull();
  expect(shownAddress(address)).toBe(new URL(address).href);
});

test.each([
  ['https://mcp.example/mcp/k3', 'https://mcp.example'],
  ['https://mcp.example/mcp/kAbCd', 'https://mcp.example'],
  ['https://mcp.example/abcdefghijklm', 'https://mcp.example'],
  ['https://mcp.example/ab-cd-ef', 'https://mcp.example'],
  ['https://mcp.example/0f8b41fe-6c1e-4a3e-9a3b-3f3b5a9c0d11/sse', 'https://mcp.example'],
  ['https://mcp.example/mcp%2Fa', 'https://mcp.example'],
  ['https://mcp.example/mcp;a', 'https://mcp.example'],
  ['https://mcp.example/v100', 'https://mcp.example'],
  ['https://mcp.example/a/b/c/d/e', 'https://mcp.example'],
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
  [['-y', '@acme-tools/mcp-server@1.2.3', '--read-only']],
  [['-y', 'mcp-server@latest']],
])('the arguments %j are plain', (args) => {
  expect(whyNotPlainArgs(args)).toBeNull();
});

test.each([
  '-psecret',
  '--token=abc',
  'sk-12345',
  'ghp_abcdefghijklmnop',
  'eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln',
  'postgres://user:password@db.example/a',
  '{"token":"a"}',
  'token=a.js',
  'abcdefghijklmnopqrst',
  '',
])('the argument %j may hold a secret', (arg) => {
  expect(whyNotPlainArgs(['server.mjs', arg])).toContain('args.1');
});
