import { expect, test } from 'vitest';
import { Hosts } from './hosts.ts';

const hosts = new Hosts(
  'https://skills.example.com/base',
  new Set(['platform']),
  new Set(['https://app.example.com']),
);

test.each([
  ['localhost:3000', true],
  ['127.0.0.1:3000', true],
  ['[::1]:3000', true],
  ['10.1.2.3', true],
  ['skills.example.com', true],
  ['SKILLS.example.com:443', true],
  ['platform:3000', true],
  ['evil.example.com', false],
  ['localhost.evil.example.com', false],
  ['evil.example.com/@localhost', false],
  ['evil.example.com#localhost', false],
  ['localhost/"x', false],
  ['a@localhost', false],
  ['', false],
  [undefined, false],
])('a request to the host %j is served: %s', (header, isServed) => {
  expect(hosts.isHost(header)).toBe(isServed);
});

test.each([
  [undefined, true],
  ['http://localhost:5173', true],
  ['https://skills.example.com', true],
  ['https://app.example.com', true],
  ['https://evil.example.com', false],
  ['http://127.0.0.1:5173', true],
  ['http://10.1.2.3:3000', true],
  ['http://10.1.2.4:3000', false],
  ['http://203.0.113.9', false],
  ['null', false],
  ['', false],
])('a request of the origin %j is served: %s', (header, isServed) => {
  expect(hosts.isOrigin(header, '10.1.2.3:3000')).toBe(isServed);
});
