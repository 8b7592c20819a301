import { describe, expect, test } from 'vitest';
import {
  authorityOf,
  isAuthority,
  isGuarded,
  isReadable,
  originForm,
  routedUrl,
  unreadableParameter,
} from './url.ts';

describe('the origin form', () => {
  test.each([
    ['/', '/'],
    ['/api/jobs?x=http://y/z', '/api/jobs?x=http://y/z'],
    ['//x/y', '//x/y'],
    ['http://host/api/jobs?limit=1', '/api/jobs?limit=1'],
    ['HTTPS://user@host:8080/x', '/x'],
    ['http://host', '/'],
    ['http://host?x=1', '/?x=1'],
    ['*', '/*'],
    ['', '/'],
  ])('of %j is %j', (url, own) => {
    expect(originForm(url)).toBe(own);
  });
});

describe('escapes', () => {
  test.each(['', '/api/jobs', '%20', 'a%2Fb%3F', '%F0%9F%8F%94', '%EF%BB%BF', '100%25'])(
    'that can be read: %j',
    (text) => {
      expect(isReadable(text)).toBe(true);
    },
  );

  test.each(['%', '%2', '%zz', '%u0041', '%ff', '%c0%af', '%ed%a0%80', '%00', 'a%00b', '%E4x'])(
    'that cannot: %j',
    (text) => {
      expect(isReadable(text)).toBe(false);
    },
  );
});

describe('what is routed', () => {
  test.each([
    ['/api/agents/a%20b?x=%zz', '/api/agents/a%20b?x=%zz'],
    ['http://host/health', '/health'],
    // Still judged by the hooks of its prefix, and matched by no route.
    ['/api/agents/%zz', '/api/'],
    ['/api/%00?limit=1', '/api/'],
    ['http://host/admin/%ff', '/admin/'],
    ['/apix/%zz', '/.unreadable'],
    ['/%zz', '/.unreadable'],
    ['/console/%ff', '/.unreadable'],
  ])('for %j is %j', (url, routed) => {
    expect(routedUrl(url)).toBe(routed);
  });
});

describe('a host and a port', () => {
  test.each(['', 'a', 'localhost:3000', 'A-b_c.example.', '127.0.0.1:', '[::1]:80', 'x%41', "a'b"])(
    'are %j',
    (text) => {
      expect(isAuthority(text)).toBe(true);
    },
  );

  test.each([
    ...[
      'a/b@c',
      'a@b',
      'localhost/"x',
      'a"b',
      'a b',
      'a?b',
      'a#b',
      'a\\b',
      'a:x',
      'a:1:2',
      'a:123456',
    ],
    ...['[::1', '::1', '[::1]x', '<a>', 'é', 'a%zz', 'a,b c'],
  ])('are not %j', (text) => {
    expect(isAuthority(text)).toBe(false);
  });

  test('are in a url in absolute form', () => {
    expect(authorityOf('http://a:80/b?c')).toBe('a:80');
    expect(authorityOf('http://a@b')).toBe('a@b');
    expect(authorityOf('/http://a/')).toBeUndefined();
    expect(authorityOf('*')).toBeUndefined();
  });
});

test.each([
  ['/api', true],
  ['/api/', true],
  ['/api?x', true],
  ['/admin/x', true],
  ['/apis', false],
  ['/administration', false],
  ['/x/api', false],
])('%s is guarded: %j', (url, guarded) => {
  expect(isGuarded(url)).toBe(guarded);
});

test.each([
  ['/x?a=1&b=%20', null],
  ['/x', null],
  ['/x?a=1&limit=%00&c=2', 'limit'],
  ['/x?a%20b=%zz', 'a b'],
  ['/x?%zz=1', 'query'],
])('the unreadable parameter of %s is %j', (url, name) => {
  expect(unreadableParameter(url)).toBe(name);
});
