import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAllowList } from './allow-list.ts';
import { checkUrl, type UrlRules } from './url-guard.ts';

const webhooks: UrlRules = { schemes: ['https:'], allowed: [], fragment: 'refused' };
const skills: UrlRules = {
  schemes: ['https:', 'http:'],
  allowed: [],
  fragment: 'ignored',
};
const withLoopback = { ...skills, allowed: parseAllowList('127.0.0.0/8') };

function codeOf(text: string, rules: UrlRules): string {
  const checked = checkUrl(text, rules);
  return checked.ok ? 'ok' : checked.code;
}

describe('a url that leads inside is refused', () => {
  test.each([
    'https://127.0.0.1/',
    'https://127.0.0.1./',
    'https://127.1/',
    'https://0/',
    'https://0x7f.1/',
    'https://0x7f000001/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://①②⑦.0.0.1/',
    'https://１２７.0.0.1/',
    'https://%31%32%37.0.0.1/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:7f00:1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[0:0:0:0:0:ffff:7f00:1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[fd00:ec2::254]/',
    'https://[fe80::1]/',
    'https://10.0.0.1/',
    'https://100.100.100.200/',
    'https://169.254.169.254/latest/meta-data/',
    'https://localhost/',
    'https://LOCALHOST/',
    'https://localhost./',
    'https://ⓛocalhost/',
    'https://any.localhost/',
    'https://printer.local/',
    'https://metadata.google.internal/',
    'https://metadata.google.internal./',
    'https://internal/',
  ])('%s', (url) => {
    expect(codeOf(url, webhooks)).toBe('blocked_address');
    expect(codeOf(url, skills)).toBe('blocked_address');
  });

  test.each([
    ['a host in another spelling', 'https:127.0.0.1'],
    ['a path where a host should be', 'https:///example.com/'],
    ['a path that a browser would complete', '//example.com/'],
    ['no scheme', 'example.com'],
    ['an empty text', ''],
    ['no host', 'https://'],
    ['credentials', 'https://user:secret@example.com/'],
    ['a user', 'https://user@example.com/'],
    ['an @ behind a backslash', 'https://example.com\\@127.0.0.1/'],
    ['a tab', 'https://exam\tple.com/'],
    ['a line end', 'https://example.com/\r\nHost: other'],
    ['a NUL', 'https://example.com/\0'],
    ['a space at the end', 'https://example.com/ '],
    ['a no-break space', 'https://example.com/\u00a0'],
    ['a port too high', 'https://example.com:65536/'],
    ['a name that ends in a number', 'https://example.1/'],
    ['a label too long', `https://${'a'.repeat(64)}.com/`],
    ['an empty label', 'https://example..com/'],
    ['a zone', 'https://[fe80::1%25eth0]/'],
    ['more than 2,048 characters', `https://example.com/${'a'.repeat(2029)}`],
    ['ftp', 'ftp://example.com/'],
    ['file', 'file:///etc/passwd'],
    ['javascript', 'javascript://example.com/%0aalert(1)'],
    ['data', 'data:text/plain,hello'],
    ['websockets', 'wss://example.com/'],
  ])('%s is no url for us', (_what, url) => {
    expect(codeOf(url, webhooks)).toBe('invalid_url');
    expect(codeOf(url, skills)).toBe('invalid_url');
  });

  test('a webhook is https and has no fragment, a page may be http and have one', () => {
    expect(codeOf('http://example.com/', webhooks)).toBe('invalid_url');
    expect(codeOf('http://example.com/', skills)).toBe('ok');
    expect(codeOf('https://example.com/#part', webhooks)).toBe('invalid_url');
    expect(codeOf('https://example.com/#', webhooks)).toBe('invalid_url');
    expect(codeOf('https://example.com/#part', skills)).toBe('ok');
  });

  test('the reason can be shown after "The url"', () => {
    const checked = checkUrl('http://example.com/', webhooks);

    expect(checked).toMatchObject({ ok: false, reason: 'must start with https://' });
  });
});

describe('a url that leads outside is taken', () => {
  test.each([
    'https://example.com',
    'https://example.com/a?b=c%20d',
    `https://example.com/${'a'.repeat(2028)}`,
    'HTTPS://EXAMPLE.COM/',
    'https://bücher.example/',
    'https://xn--bcher-kva.example/',
    'https://under_score.example.com/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'https://localhost.example.com/',
    'https://notlocal.example/',
    'https://example.com./',
  ])('%s', (url) => {
    expect(codeOf(url, webhooks)).toBe('ok');
  });

  test('what is returned is the url as it will be asked for', () => {
    const checked = checkUrl('https://①.1.1.1:443/a b'.replace(' ', '%20'), webhooks);

    expect(checked.ok && checked.url.href).toBe('https://1.1.1.1/a%20b');
  });
});

describe('ports', () => {
  test.each([80, 443, 1024, 3000, 8080, 8443, 9443, 65535])('%i is a port for the web', (port) => {
    expect(codeOf(`https://example.com:${port}/`, webhooks)).toBe('ok');
  });

  test.each([
    0, 1, 22, 25, 81, 444, 1023, 2375, 2379, 3306, 5432, 6379, 6443, 9042, 9200, 11211, 27017,
  ])('%i is not', (port) => {
    expect(codeOf(`https://example.com:${port}/`, webhooks)).toBe('blocked_port');
    expect(codeOf(`https://8.8.8.8:${port}/`, webhooks)).toBe('blocked_port');
  });

  test.each([0, 22, 25, 442])("a name's port %i is refused with an operator's list too", (port) => {
    expect(codeOf(`http://example.com:${port}/`, withLoopback)).toBe('blocked_port');
    expect(codeOf(`http://localhost:${port}/`, withLoopback)).toBe('blocked_port');
  });

  test.each([80, 443, 1024, 5432])(
    "a name's port %i waits with an operator's list for the address",
    (port) => {
      expect(codeOf(`http://db.internal:${port}/`, withLoopback)).toBe('ok');
    },
  );

  test("an address of the operator's list may be reached at any port", () => {
    expect(codeOf('http://127.0.0.1:6379/', withLoopback)).toBe('ok');
    expect(codeOf('http://127.0.0.1:22/', withLoopback)).toBe('ok');
    expect(codeOf('http://127.0.0.1:0/', withLoopback)).toBe('blocked_port');
    expect(codeOf('http://8.8.8.8:6379/', withLoopback)).toBe('blocked_port');
  });
});

describe('with a list of the operator', () => {
  test('local names are left to the connection, which judges their addresses', () => {
    expect(codeOf('http://localhost:8080/', withLoopback)).toBe('ok');
    expect(codeOf('http://printer.local/', withLoopback)).toBe('ok');
  });

  test('literals outside it stay refused', () => {
    expect(codeOf('http://127.0.0.1/', withLoopback)).toBe('ok');
    expect(codeOf('http://[::1]/', withLoopback)).toBe('blocked_address');
    expect(codeOf('http://10.0.0.1/', withLoopback)).toBe('blocked_address');
  });
});

test('for any text, there is a result, and no refused address is allowed', () => {
  const pieces = fc.constantFrom(
    'https://',
    'http:',
    '/',
    '127',
    '.',
    '0',
    '@',
    '[::1]',
    ':',
    '\\',
    'x',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const checked = checkUrl(parts.join(''), skills);
      if (!checked.ok) return;
      expect(checked.url.username).toBe('');
      expect(checked.url.hostname).not.toMatch(/^(127|0|10)(\.\d+){3}$|^\[/);
    }),
    { numRuns: 2_000 },
  );
});
