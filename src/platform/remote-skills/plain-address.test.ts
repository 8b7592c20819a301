import { expect, test } from 'vitest';
import { shownAddress, whyNotPlain } from './plain-address.ts';

test.each([
  'https://mcp.example',
  'https://mcp.example/',
  'https://mcp.example:8443/mcp',
  'https://mcp.example/mcp/',
  'https://mcp.example/api/v1/mcp',
  'https://mcp.example/sse',
  'https://orders.example/openapi.json',
  'https://orders.example/api/v3/openapi.yaml',
  'https://orders.example/v3/api-docs',
  'https://orders.example/swagger/v1/swagger.json',
])('%s is plain', (address) => {
  expect(whyNotPlain('url', address)).toBeNull();
  expect(shownAddress(address)).toBe(new URL(address).href);
});

test.each([
  ['https://mcp.example/mcp/a', 'https://mcp.example'],
  ['https://mcp.example/a', 'https://mcp.example'],
  ['https://mcp.example/mcp%2Fa', 'https://mcp.example'],
  ['https://mcp.example/mcp;a', 'https://mcp.example'],
  ['https://mcp.example/v10', 'https://mcp.example'],
  // Many words of a few are a number.
  ['https://mcp.example/v1/v2/v3/v4', 'https://mcp.example'],
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
