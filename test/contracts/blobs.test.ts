/** What keeps the bytes of files: one suite for the directory and for S3-compatible storage. */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Blobs } from '../../src/adapters/blobs/blobs.ts';
import { blobsIn, DirectoryBlobs } from '../../src/adapters/blobs/directory-blobs.ts';
import { S3Blobs } from '../../src/adapters/blobs/s3-blobs.ts';
import { removeStale, Spool } from '../../src/adapters/blobs/spool.ts';
import { s3Keys, signatureOf, startS3 } from '../support/s3-server.ts';

async function inS3(secretAccessKey = s3Keys.secretAccessKey) {
  const server = await startS3();
  onTestFinished(() => server.close());
  const url = server.environment['FILES_S3_URL'] as string;
  const blobs = new S3Blobs({ url, region: 'eu-test-1', ...s3Keys, secretAccessKey });
  onTestFinished(() => blobs.close());
  return { blobs, server };
}

const emptyPlace = () => mkdtempSync(join(tmpdir(), 'blobs-'));

/** Bytes that wait in a file of this process. */
function waiting(bytes: Buffer) {
  const path = join(emptyPlace(), 'arrived');
  writeFileSync(path, bytes);
  return { path, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

const key = 'acme/0123-abcd';
const kinds: Record<string, () => Promise<Blobs>> = {
  'a directory': async () => new DirectoryBlobs(emptyPlace(), true),
  'S3-compatible storage': async () => (await inS3()).blobs,
};

describe.each(Object.entries(kinds))('%s', (_name, made) => {
  test('gives the bytes that were put, and none once they are removed', async () => {
    const blobs = await made();
    const bytes = randomBytes(3_000_000);

    await blobs.put(key, waiting(bytes));
    const read = await blobs.read(key);
    expect(read && (await buffer(read)).equals(bytes)).toBe(true);
    expect(await blobs.has(key, bytes.length)).toBe(true);
    expect(await blobs.has(key, bytes.length - 1)).toBe(false);
    const part = await blobs.read(key, { start: 1_000_000, end: 1_999_999 });
    expect(part && (await buffer(part)).equals(bytes.subarray(1_000_000, 2_000_000))).toBe(true);
    await blobs.remove(key);
    await blobs.remove(key);

    expect(await blobs.read(key)).toBeNull();
    expect(await blobs.has(key, bytes.length)).toBe(false);
  });
});

test('a directory forgets what arrived before a crash, and keeps what was put', async () => {
  const dataDir = emptyPlace();
  const before = new DirectoryBlobs(dataDir, true);
  await before.put(key, waiting(Buffer.from('kept')));
  writeFileSync(join(blobsIn(dataDir), 'acme/other'), '');
  const after = () => new DirectoryBlobs(dataDir, true);
  const { spoolDirectory } = after();
  await before.put('.arriving/half', waiting(Buffer.from('half of a file')));
  await before.put('arriving/whole', waiting(Buffer.alloc(31)));

  after();

  expect(readdirSync(spoolDirectory)).toEqual([]);
  expect(await buffer((await before.read(key))!)).toEqual(Buffer.from('kept'));
  expect(await before.has('arriving/whole', 31)).toBe(true);
});

describe('a spool', () => {
  const bounds = { file: 10, all: 12, organization: 10 };
  const receive = (spool: Spool, organization: string, bytes: number, used = async () => {}) =>
    spool.receive(organization, [Buffer.alloc(bytes)] as never, 'a', used);

  test('takes no more bytes at a time than it has room for, nor of an organization', async () => {
    const directory = emptyPlace();
    const spool = new Spool(directory, bounds);
    const refused = { code: 'service_unavailable', extras: { retryAfter: 1 } };

    await receive(spool, 'a', 8, async () => {
      await expect(receive(spool, 'a', 3)).rejects.toMatchObject(refused);
      await expect(receive(spool, 'b', 5)).rejects.toMatchObject(refused);
      await receive(spool, 'b', 4);
    });
    await receive(spool, 'a', 10);
    await expect(receive(spool, 'a', 11)).rejects.toMatchObject({ code: 'payload_too_large' });

    expect(readdirSync(directory)).toEqual([]);
  });

  test('of a disk that takes nothing refuses for now', async () => {
    const file = join(emptyPlace(), 'file');
    writeFileSync(file, '');

    await expect(receive(new Spool(file, bounds), 'a', 1)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
  });
});

test('storage starts for a user that the machine does not know by name', async () => {
  const module = new URL('../../src/adapters/blobs/s3-blobs.ts', import.meta.url).href;
  const program = `import { syncBuiltinESMExports } from 'node:module';
    import os from 'node:os';
    os.userInfo = () => { throw new Error('uv_os_get_passwd returned ENOENT'); };
    syncBuiltinESMExports();
    const { S3Blobs } = await import('${module}');
    console.log(new S3Blobs({ url: 'http://127.0.0.1:9/a' }).spoolDirectory);`;

  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args);

  expect(stdout.trim()).toBe(join(tmpdir(), `skillwright-files-${process.getuid?.()}`));
});

test('what a process was receiving when it was ended is removed once it is old', async () => {
  const directory = emptyPlace();
  const [old, arriving] = [join(directory, 'old'), join(directory, 'arriving')];
  for (const path of [old, arriving]) writeFileSync(path, 'half');
  const before = Date.now() / 1_000 - 3 * 3_600;
  utimesSync(old, before, before);

  await removeStale(directory);
  await removeStale(join(directory, 'none'));

  expect(readdirSync(directory)).toEqual(['arriving']);
});

describe('S3-compatible storage that refuses', () => {
  test('a wrong secret is told without what the storage answered', async () => {
    const { blobs } = await inS3('another secret');

    await expect(blobs.read(key)).rejects.toMatchObject({
      code: 'upstream_unavailable',
      message: 'The storage of files cannot be used right now',
      extras: { cause: { message: expect.stringContaining('it answered 403') } },
    });
  });

  test('what is not there is gone also for credentials that may not list the bucket', async () => {
    const { blobs, server } = await inS3();
    server.forbidListing();

    expect(await blobs.read(key)).toBeNull();
    expect(await blobs.has(key, 1)).toBe(false);
  });

  test('what is refused for another reason is not gone, whatever the credentials may read', async () => {
    const { blobs, server } = await inS3();
    server.forbidListing('RequestTimeTooSkewed');

    await expect(blobs.read(key)).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });

  test('bytes that change on the way are refused', async () => {
    const { blobs, server } = await inS3();
    const source = waiting(Buffer.from('whole'));
    writeFileSync(source.path, 'wrong');

    await expect(blobs.put(key, source)).rejects.toMatchObject({ code: 'upstream_unavailable' });

    expect(server.objects.size).toBe(0);
  });

  test('storage that is not there', async () => {
    const { blobs, server } = await inS3();
    await server.close();

    await expect(blobs.remove(key)).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });
});

test('the storage of the tests signs as Amazon does (its own published example)', () => {
  const signed = 'host;range;x-amz-content-sha256;x-amz-date';
  const headers = {
    authorization: `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=${signed}, Signature=x`,
    host: 'examplebucket.s3.amazonaws.com',
    range: 'bytes=0-9',
    'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'x-amz-date': '20130524T000000Z',
  };

  const signature = signatureOf(
    { method: 'GET', url: '/test.txt', headers },
    'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  );

  expect(signature).toBe('f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41');
});
