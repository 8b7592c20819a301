import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { encryptionKeyOf, readEncryptionKey } from './encryption-key.ts';

const key = Buffer.from('00fbff'.padEnd(62, '3e').padEnd(64, 'f'), 'hex');
const base64 = key.toString('base64');
const base64url = key.toString('base64url');

/** A data directory that does not exist yet. */
function dataDirectory(): { dataDir: string; file: string } {
  const parent = mkdtempSync(join(tmpdir(), 'skillwright-encryption-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const dataDir = join(parent, 'a/data');
  return { dataDir, file: join(dataDir, 'encryption-key') };
}

/** As `dataDirectory`, with a file of this content. */
function kept(content: string): ReturnType<typeof dataDirectory> {
  const place = dataDirectory();
  mkdirSync(place.dataDir, { recursive: true });
  writeFileSync(place.file, content);
  return place;
}

describe('ENCRYPTION_KEY', () => {
  test.each([
    ['hex', key.toString('hex')],
    ['hex in upper case', key.toString('hex').toUpperCase()],
    ['base64', base64],
    ['base64 without padding', base64.replace('=', '')],
    ['base64url', base64url],
    ['base64url with padding', `${base64url}=`],
  ])('is 32 bytes as %s', (_how, text) => {
    expect(base64).toMatch(/[+/].*=$/);
    expect(readEncryptionKey(text)).toEqual({ value: key });
  });

  test.each([
    '',
    ' ',
    'secret',
    key.toString('hex').slice(1),
    `${key.toString('hex')}0`,
    `0x${key.toString('hex').slice(2)}`,
    `${key.toString('hex')}\n`,
    ` ${base64}`,
    `${base64}=`,
    base64.slice(1),
    base64url.slice(1),
    `${base64url}A`,
    `-${base64.slice(1)}`,
    `${base64url.slice(0, -1)}9`,
    `${base64url.slice(0, -1)}é`,
    Buffer.alloc(16).toString('base64'),
    Buffer.alloc(33).toString('base64'),
    'x'.repeat(64),
  ])('may be nothing else: %j', (text) => {
    expect(readEncryptionKey(text)).toEqual({
      expected: '32 random bytes as 64 hex digits or as base64',
    });
  });
});

describe('the key', () => {
  test('that is given is used, and nothing is written', () => {
    const { dataDir } = dataDirectory();

    expect(encryptionKeyOf(key, dataDir, true)).toEqual(key);
    expect(encryptionKeyOf(key, dataDir, false)).toEqual(key);
    expect(existsSync(dataDir)).toBe(false);
  });

  test('is made at the first start and kept with mode 0600, whatever the umask', () => {
    const { dataDir, file } = dataDirectory();
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));

    const made = encryptionKeyOf(null, dataDir, true);

    expect(made).toHaveLength(32);
    expect(readFileSync(file, 'utf8')).toBe(`${made?.toString('hex')}\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  test('is the same after a restart, and another in another directory', () => {
    const { dataDir } = dataDirectory();
    const first = encryptionKeyOf(null, dataDir, true);

    expect(encryptionKeyOf(null, dataDir, true)).toEqual(first);
    expect(encryptionKeyOf(null, dataDirectory().dataDir, true)).not.toEqual(first);
  });

  test('that is given wins over the one that is kept', () => {
    const { dataDir, file } = kept(`${'0'.repeat(64)}\n`);

    expect(encryptionKeyOf(key, dataDir, true)).toEqual(key);
    expect(readFileSync(file, 'utf8')).toBe(`${'0'.repeat(64)}\n`);
  });

  test('may be written into the file by the operator, as in ENCRYPTION_KEY', () => {
    expect(encryptionKeyOf(null, kept(`${base64}\r\n`).dataDir, true)).toEqual(key);
  });

  test('is none in a cluster that was given none', () => {
    const { dataDir } = dataDirectory();

    expect(encryptionKeyOf(null, dataDir, false)).toBeNull();
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe('a file', () => {
  test('that holds no key is refused with a sentence that does not show it, and stays', () => {
    const { dataDir, file } = kept('not a key\n');
    const start = () => encryptionKeyOf(null, dataDir, true);

    expect(start).toThrow(`${file} holds no encryption key`);
    expect(start).not.toThrow('not a key');
    expect(readFileSync(file, 'utf8')).toBe('not a key\n');
  });

  test('that is empty is refused, and stays', () => {
    const { dataDir, file } = kept('\n');

    expect(() => encryptionKeyOf(null, dataDir, true)).toThrow(`${file} is empty: delete it`);
    expect(readFileSync(file, 'utf8')).toBe('\n');
  });

  test('that cannot be read stops the start and is never replaced', () => {
    const { dataDir, file } = dataDirectory();
    mkdirSync(file, { recursive: true });

    expect(() => encryptionKeyOf(null, dataDir, true)).toThrow('EISDIR');
    expect(statSync(file).isDirectory()).toBe(true);
  });
});
