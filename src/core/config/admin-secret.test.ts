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
import { expect, onTestFinished, test } from 'vitest';
import { adminSecretOf } from './admin-secret.ts';

/** A data directory that does not exist yet. */
function dataDirectory(): { dataDir: string; file: string } {
  const parent = mkdtempSync(join(tmpdir(), 'skillwright-secret-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const dataDir = join(parent, 'a/data');
  return { dataDir, file: join(dataDir, 'admin-secret') };
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('ADMIN_SECRET is used as it is given, and nothing is written', () => {
  const { dataDir } = dataDirectory();

  expect(adminSecretOf('given', dataDir)).toEqual({ value: 'given', isNew: false });
  expect(existsSync(dataDir)).toBe(false);
});

test('one is generated at the first start and kept with mode 0600, whatever the umask', () => {
  const { dataDir, file } = dataDirectory();
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));

  const { value, isNew } = adminSecretOf(null, dataDir);

  expect(isNew).toBe(true);
  expect(value).toMatch(/^[\w-]{32}$/);
  expect(readFileSync(file, 'utf8')).toBe(`${value}\n`);
  expect(modeOf(file)).toBe('600');
  expect(modeOf(dataDir)).toBe('700');
});

test('the generated secret is kept over restarts and shown as new only once', () => {
  const { dataDir } = dataDirectory();
  const first = adminSecretOf(null, dataDir);

  expect(adminSecretOf(null, dataDir)).toEqual({ value: first.value, isNew: false });
  expect(adminSecretOf(null, dataDir)).toEqual({ value: first.value, isNew: false });
});

test('two directories never get the same secret', () => {
  const one = adminSecretOf(null, dataDirectory().dataDir);
  const other = adminSecretOf(null, dataDirectory().dataDir);

  expect(one.value).not.toBe(other.value);
});

test('a secret of the operator written into the file is taken without its line break', () => {
  const { dataDir, file } = dataDirectory();
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(file, 'my-own-admin-secret\r\n');

  expect(adminSecretOf(null, dataDir)).toEqual({ value: 'my-own-admin-secret', isNew: false });
});

test.each(['too-short', 'with spaces in it', 'ключ-ключ-ключ-ключ'])(
  'a file with a secret that may not be one is refused with a sentence: %s',
  (content) => {
    const { dataDir, file } = dataDirectory();
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(file, content);

    expect(() => adminSecretOf(null, dataDir)).toThrow('at least 16 visible ASCII characters');
    expect(readFileSync(file, 'utf8')).toBe(content);
  },
);

test.each(['', '\n', '  \t\r\n'])('an empty file is refused with a sentence: %j', (content) => {
  const { dataDir, file } = dataDirectory();
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(file, content);

  expect(() => adminSecretOf(null, dataDir)).toThrow(`${file} is empty: delete it`);
  expect(readFileSync(file, 'utf8')).toBe(content);
});

test('a file that cannot be read stops the start and is never replaced', () => {
  const { dataDir, file } = dataDirectory();
  mkdirSync(file, { recursive: true });

  expect(() => adminSecretOf(null, dataDir)).toThrow('EISDIR');
  expect(statSync(file).isDirectory()).toBe(true);
});

test('the given secret wins over the one that is kept', () => {
  const { dataDir } = dataDirectory();
  adminSecretOf(null, dataDir);

  expect(adminSecretOf('given', dataDir)).toEqual({ value: 'given', isNew: false });
});
