import { expect, test } from 'vitest';
import { linkOf } from './link.ts';

test.each([
  ['https://shop.example/pay?id=1', 'shop.example'],
  ['http://127.0.0.1:3000/a', '127.0.0.1:3000'],
  ['https://\u0430pple.example/', 'xn--pple-43d.example'],
])('%s leads to %s', (url, host) => {
  expect(linkOf(url)?.host).toBe(host);
});

test.each([
  ...['javascript:alert(1)', 'http://shop.example/', 'https://bank.example@evil.example/', 'pay'],
  ...[`https://shop.example/${'a'.repeat(2_048)}`, null, { url: 'https://shop.example/' }],
])('no person is sent to %j', (url) => {
  expect(linkOf(url)).toBeNull();
});
