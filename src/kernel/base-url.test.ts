import { expect, test } from 'vitest';
import { baseUrlFault } from './base-url.ts';

test.each([
  'https://api.openai.com/v1',
  'https://api.openai.com/v1/',
  'https://api.openai.com',
  'HTTPS://Gateway.Example:8443/a/b',
  'http://127.0.0.1:11434/v1',
  'http://localhost:1234/v1',
  'http://[::1]:8000/v1',
  'http://ollama.internal/v1',
  'https://grüße.example/v1',
  `https://example.com/${'x'.repeat(2_028)}`,
])('the address of a provider may be %j', (text) => {
  expect(baseUrlFault(text)).toBeNull();
});

test.each([
  ['', 'absolute'],
  ['api.openai.com/v1', 'absolute'],
  ['/v1', 'absolute'],
  ['//api.openai.com', 'absolute'],
  ['ftp://example.com', 'absolute'],
  ['file:///etc/passwd', 'absolute'],
  ['javascript:alert(1)', 'absolute'],
  ['https:example.com', 'absolute'],
  ['https://', 'absolute'],
  ['https:///example.com', 'absolute'],
  ['https://a b.example', 'absolute'],
  ['https://exam\nple.com', 'absolute'],
  ['https://example.com/v1 ', 'absolute'],
  ['https://example.com\\@evil.example', 'absolute'],
  ['https://example.com:99999', 'absolute'],
  ['https://user@example.com', 'credentials'],
  ['https://user:password@example.com', 'credentials'],
  ['https://:password@example.com', 'credentials'],
  ['https://example.com/#', 'fragment'],
  ['https://example.com/v1#models', 'fragment'],
  ['https://example.com/v1?', 'query'],
  ['https://example.com/v1?key=1', 'query'],
  [`https://example.com/${'x'.repeat(2_029)}`, '2048'],
])('and not %j', (text, reason) => {
  expect(baseUrlFault(text)).toContain(reason);
});
