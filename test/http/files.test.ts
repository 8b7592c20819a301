/** Files: kept, read, listed, deleted (docs/files.md). */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { embeddedTest, type Platform, startPlatform } from '../support/platform.ts';
import { openRaw } from '../support/raw-http.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const isOnCluster = process.env['TEST_STORES'] === 'cluster';
const mebibyte = 1024 * 1024;
const hourMs = 3_600_000;
const clock = manualClock();

let platform: Platform;
let storage: S3Server;
beforeAll(async () => {
  storage = await startS3();
  platform = await startPlatform({
    // The processes of a cluster share the time of their database.
    ...(isOnCluster ? {} : { clock }),
    environment: {
      FILE_MAX_MB: '2',
      FILES_MAX: '10',
      FILES_MAX_MB: '5',
      ...(isOnCluster && storage.environment),
    },
  });
});
afterAll(async () => {
  await platform.stop();
  await storage.close();
});

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(100, 7)]);
const bytesType = { 'content-type': 'application/octet-stream' };

/** Keeps bytes as they are. */
const keep = (
  tenant: Tenant,
  bytes: Buffer | string,
  { name = 'a', headers = {} }: { name?: string; headers?: Record<string, string> } = {},
) =>
  tenant.send('POST', `/api/files?name=${encodeURIComponent(name)}`, {
    body: Buffer.from(bytes),
    headers: { ...bytesType, ...headers },
  });

/** Sends a form. */
async function sendForm(tenant: Tenant, form: FormData, query = '') {
  const headers = { 'x-api-key': tenant.key };
  const answer = await fetch(`${platform.url}/api/files${query}`, {
    ...{ method: 'POST', headers },
    body: form,
  });
  // biome-ignore lint/suspicious/noExplicitAny: a file, or a refusal
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as any };
}

async function contentOf(tenant: Tenant, id: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${platform.url}/api/files/${id}/content`, {
    headers: { 'x-api-key': tenant.key, ...headers },
  });
  return {
    status: answer.status,
    headers: answer.headers,
    bytes: Buffer.from(await answer.arrayBuffer()),
  };
}

/** How many different bytes are stored for a tenant. */
function stored({ organization }: Tenant): number {
  if (isOnCluster) {
    return [...storage.objects.keys()].filter((key) => key.startsWith(`${organization}/`)).length;
  }
  const folder = join(platform.dataDir, 'files', organization);
  return existsSync(folder) ? readdirSync(folder).length : 0;
}

/** Removes all bytes of a tenant behind the platform's back. */
function lose({ organization }: Tenant): void {
  rmSync(join(platform.dataDir, 'files', organization), { recursive: true, force: true });
  for (const key of storage.objects.keys()) {
    if (key.startsWith(`${organization}/`)) storage.objects.delete(key);
  }
}

/** Puts other bytes in the place of those of the tenant's only file. */
function damage({ organization }: Tenant, bytes: Buffer): void {
  for (const key of storage.objects.keys()) {
    if (key.startsWith(`${organization}/`)) storage.objects.set(key, bytes);
  }
  const folder = join(platform.dataDir, 'files', organization);
  for (const name of isOnCluster ? [] : readdirSync(folder))
    writeFileSync(join(folder, name), bytes);
}

/** Files that are arriving, on the disk of this process. */
const arriving = () => readdirSync(join(platform.dataDir, 'files/.arriving'));

describe('a file', () => {
  test('is kept with its digest and the type that its bytes have, and read as it was sent', async () => {
    const tenant = await newTenant(platform);

    const made = await keep(tenant, png, { name: 'C:\\photos\\hafen ☀.png' });

    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      id: anId,
      name: 'hafen ☀.png',
      media_type: 'image/png',
      bytes: png.length,
      sha256: createHash('sha256').update(png).digest('hex'),
      user_id: null,
      job_id: null,
      retention_days: null,
      created_at: aTimestamp,
      expires_at: aTimestamp,
    });
    const { created_at, expires_at } = made.body;
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(30 * 24 * hourMs);
    expect(made.headers.get('location')).toBe(`/api/files/${made.body.id}`);
    expect((await tenant.get(`/api/files/${made.body.id}`)).body).toEqual(made.body);
    const read = await contentOf(tenant, made.body.id);
    expect(read.bytes.equals(png)).toBe(true);
    expect(Object.fromEntries(read.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(png.length),
      'content-disposition': "inline; filename*=UTF-8''hafen%20%E2%98%80.png",
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
    const etag = read.headers.get('etag') as string;
    for (const known of [etag, `"x", W/${etag}`, '*']) {
      expect((await contentOf(tenant, made.body.id, { 'if-none-match': known })).status).toBe(304);
    }
  });

  test('is read in parts', async () => {
    const tenant = await newTenant(platform);
    const { id } = (await keep(tenant, png)).body;

    const part = await contentOf(tenant, id, { range: 'bytes=1-4' });
    const rest = await contentOf(tenant, id, { range: 'bytes=5-' });
    const none = await contentOf(tenant, id, { range: `bytes=${png.length}-` });

    expect([part.status, rest.status, none.status]).toEqual([206, 206, 416]);
    expect(part.bytes.equals(png.subarray(1, 5))).toBe(true);
    expect(rest.bytes.equals(png.subarray(5))).toBe(true);
    expect(Object.fromEntries(part.headers)).toMatchObject({
      'accept-ranges': 'bytes',
      'content-length': '4',
      'content-range': `bytes 1-4/${png.length}`,
    });
    expect(none.headers.get('content-range')).toBe(`bytes */${png.length}`);
  });

  test('is asked for without its bytes, which the storage is not asked for', async () => {
    const tenant = await newTenant(platform);
    const { id } = (await keep(tenant, png)).body;
    lose(tenant);
    const head = (headers: Record<string, string> = {}) =>
      tenant.send('HEAD', `/api/files/${id}/content`, { headers });

    const answer = await head();
    const known = await head({ 'if-none-match': answer.headers.get('etag') as string });

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-length')).toBe(String(png.length));
    expect(known.status).toBe(304);
  });

  embeddedTest('is kept for as long after a check of whether it has changed', async () => {
    const tenant = await newTenant(platform);
    const { id, expires_at } = (await keep(tenant, png)).body;
    const etag = `"${createHash('sha256').update(png).digest('hex')}"`;
    clock.advance(10 * 24 * hourMs);

    expect((await contentOf(tenant, id, { 'if-none-match': etag })).status).toBe(304);

    const later = (await tenant.get(`/api/files/${id}`)).body.expires_at;
    expect(Date.parse(later) - Date.parse(expires_at)).toBe(10 * 24 * hourMs);
  });

  test('may come in a form, with fields beside it', async () => {
    const tenant = await newTenant(platform);
    const form = new FormData();
    form.set('note', 'of the harbour');
    form.set('file', new Blob([png], { type: 'text/html' }), 'harbour.png');

    const made = await sendForm(tenant, form);

    expect(made.body).toMatchObject({ name: 'harbour.png', media_type: 'image/png' });
    expect((await contentOf(tenant, made.body.id)).bytes.equals(png)).toBe(true);
  });

  test('may have no content type, and no bytes', async () => {
    const tenant = await newTenant(platform);
    const connection = openRaw(platform.url);
    connection.send(
      `POST /api/files HTTP/1.1\r\nhost: x\r\nx-api-key: ${tenant.key}\r\ncontent-length: 5\r\n\r\nhello`,
    );
    const [answer] = await connection.answers(1);
    connection.destroy();

    expect(answer?.body).toMatchObject({ name: 'file', media_type: 'text/plain', bytes: 5 });
    expect((await keep(tenant, '')).body).toMatchObject({
      bytes: 0,
      media_type: 'application/octet-stream',
    });
  });

  test('is of the user that x-user-id names', async () => {
    const tenant = await newTenant(platform);
    const headers = { 'x-user-id': 'ada' };
    const ofAda = await keep(tenant, 'of Ada', { headers });
    const own = await keep(tenant, 'of all');

    const listed = async (query: string) =>
      (await tenant.get(`/api/files${query}`)).body.data.map(({ id }: { id: string }) => id);

    expect(ofAda.body.user_id).toBe('ada');
    expect(await listed('')).toEqual([own.body.id, ofAda.body.id]);
    expect(await listed('?user_id=ada')).toEqual([ofAda.body.id]);
    expect(await listed('?user_id=')).toEqual([own.body.id]);
    expect((await tenant.get('/api/files?limit=1&offset=1')).body).toMatchObject({
      data: [{ id: ofAda.body.id }],
      ...{ total: 2, bytes: 'of Ada'.length + 'of all'.length },
    });
  });

  test('is kept for as many days as its client says', async () => {
    const tenant = await newTenant(platform);
    const send = (days: string) =>
      tenant.send('POST', `/api/files?retention_days=${days}`, { body: png, headers: bytesType });

    const { body } = await send('90');

    expect(body.retention_days).toBe(90);
    const keptMs = Date.parse(body.expires_at) - Date.parse(body.created_at);
    expect(keptMs).toBe(90 * 24 * hourMs);
    expectInvalid(await send('401'), 'retention_days');
  });

  embeddedTest('is kept longer when its bytes are read', async () => {
    const tenant = await newTenant(platform);
    const { body } = await keep(tenant, png);
    clock.advance(25 * 24 * hourMs);

    await contentOf(tenant, body.id);

    const { expires_at } = (await tenant.get(`/api/files/${body.id}`)).body;
    expect(Date.parse(expires_at) - Date.parse(body.expires_at)).toBe(25 * 24 * hourMs);
  });

  test('is no other organization’s', async () => {
    const [tenant, other] = [await newTenant(platform), await newTenant(platform)];
    const { body } = await keep(tenant, png);

    for (const path of [`/api/files/${body.id}`, `/api/files/${body.id}/content`]) {
      expectRefusal(await other.get(path), 404, 'not_found');
    }
    expectRefusal(await other.delete(`/api/files/${body.id}`), 404, 'not_found');
    expect((await other.get('/api/files')).body.total).toBe(0);
    expectRefusal(await tenant.get('/api/files/x'), 404, 'not_found');
  });
});

describe('bytes', () => {
  test('of two files that are the same are stored once, until both are deleted', async () => {
    const tenant = await newTenant(platform);
    const first = await keep(tenant, png, { name: 'one' });
    const second = await keep(tenant, png, { name: 'two' });
    expect(stored(tenant)).toBe(1);

    expect((await tenant.delete(`/api/files/${first.body.id}`)).status).toBe(204);

    expect((await contentOf(tenant, second.body.id)).bytes.equals(png)).toBe(true);
    await tenant.delete(`/api/files/${second.body.id}`);
    await waitFor(() => stored(tenant) === 0, {
      describe: 'the bytes are removed',
      deadlineMs: 30_000,
    });
    expectRefusal(await tenant.get(`/api/files/${second.body.id}/content`), 404, 'not_found');
  });

  test('that the storage has lost are stored again with the next file that has them', async () => {
    const tenant = await newTenant(platform);
    const { body } = await keep(tenant, png);
    lose(tenant);
    expectRefusal(await tenant.get(`/api/files/${body.id}/content`), 404, 'not_found');

    expect((await keep(tenant, png)).status).toBe(201);

    expect((await contentOf(tenant, body.id)).bytes.equals(png)).toBe(true);
  });

  test('that the storage has lost in part are no answer, until a file with the same bytes is kept', async () => {
    const tenant = await newTenant(platform);
    const { id } = (await keep(tenant, png)).body;
    damage(tenant, png.subarray(0, 50));
    const refusal = await tenant.get(`/api/files/${id}/content`);
    expectRefusal(refusal, 502, 'upstream_unavailable');
    const ofFile = ['etag', 'content-disposition', 'accept-ranges', 'content-range'];
    expect(ofFile.filter((name) => refusal.headers.has(name))).toEqual([]);

    await keep(tenant, png);

    expect((await contentOf(tenant, id)).bytes.equals(png)).toBe(true);
  });

  test('that are others end the answer before it is whole', async () => {
    const tenant = await newTenant(platform);
    const bytes = randomBytes(mebibyte);
    const { id } = (await keep(tenant, bytes)).body;
    damage(tenant, randomBytes(mebibyte));

    await expect(contentOf(tenant, id)).rejects.toThrow();
  });

  test('of files that come and go at once are there while a file names them', async () => {
    const tenant = await newTenant(platform);
    const rounds = Array.from({ length: 8 }, async () => {
      const { body } = await keep(tenant, png);
      expect((await tenant.delete(`/api/files/${body.id}`)).status).toBe(204);
    });
    const kept = keep(tenant, png);
    await Promise.all([...rounds, kept]);

    expect((await contentOf(tenant, (await kept).body.id)).bytes.equals(png)).toBe(true);
    await waitFor(() => stored(tenant) === 1, {
      describe: 'what others have stored of the same bytes is removed',
      deadlineMs: 30_000,
    });
    const { kysely } = platform.database.read;
    const totals = await kysely
      .selectFrom('file_totals')
      .selectAll()
      .where('organization_id', '=', tenant.organization)
      .executeTakeFirstOrThrow();
    expect([Number(totals.files), Number(totals.bytes)]).toEqual([1, png.length]);
  });

  embeddedTest(
    'are removed when their file expires, and what a crash has left behind, too',
    async () => {
      const tenant = await newTenant(platform);
      const { body } = await keep(tenant, png);
      await platform.database.write(async (tx) => {
        await tx.insert('file_garbage', [{ blob_key: `${tenant.organization}/lost`, due_at: 0 }]);
      });

      clock.advance(31 * 24 * hourMs);

      expectRefusal(await tenant.get(`/api/files/${body.id}`), 404, 'not_found');
      const garbage = async () => {
        const { rows } = await sql<{ n: number }>`select count(*) as n from file_garbage`.execute(
          platform.database.read.kysely,
        );
        return Number(rows[0]?.n);
      };
      await waitFor(async () => stored(tenant) === 0 && (await garbage()) === 0, {
        describe: 'the bytes are removed',
        deadlineMs: 30_000,
      });
    },
  );
});

embeddedTest('bytes that cannot be removed keep no others', async () => {
  const { organization } = await newTenant(platform);
  const [stuck, lost] = [`${organization}/stuck`, `${organization}/lost`];
  // A directory in the place of a file.
  mkdirSync(join(platform.dataDir, 'files', stuck), { recursive: true });
  await platform.database.write(async (tx) => {
    await tx.insert('file_garbage', [
      { blob_key: stuck, due_at: 0 },
      { blob_key: lost, due_at: 1 },
    ]);
  });
  onTestFinished(async () => {
    await platform.database.write(async (tx) => {
      await tx.kysely.deleteFrom('file_garbage').where('blob_key', '=', stuck).execute();
    });
  });

  clock.advance(hourMs);

  const left = async () => {
    const { kysely } = platform.database.read;
    const rows = await kysely
      .selectFrom('file_garbage')
      .select('blob_key')
      .where('blob_key', 'like', `${organization}/%`)
      .execute();
    return rows.map(({ blob_key }) => blob_key);
  };
  await waitFor(async () => !(await left()).includes(lost), {
    describe: 'the others are removed',
    deadlineMs: 30_000,
  });
  expect(await left()).toEqual([stuck]);
});

describe('a browser runs nothing of a file', () => {
  test.each([
    [
      'an SVG with a script',
      '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      'image/svg+xml',
    ],
    [
      'an SVG behind an XML declaration',
      '<?xml version="1.0"?>\n<svg onload="alert(1)"/>',
      'image/svg+xml',
    ],
    ['a page', ' <!DOCTYPE html><script>alert(1)</script>', 'text/html'],
  ])('%s is text', async (_what, text, type) => {
    const tenant = await newTenant(platform);
    const { body } = await keep(tenant, text, {
      name: 'a.png',
      headers: { 'content-type': 'image/png' },
    });

    const { headers } = await contentOf(tenant, body.id);

    expect(body.media_type).toBe(type);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': expect.stringMatching(/^attachment/),
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
  });

  test('a name cannot add a header', async () => {
    const tenant = await newTenant(platform);
    const { body } = await keep(tenant, 'x', { name: 'a"\r\nset-cookie: a=b' });

    const { headers } = await contentOf(tenant, body.id);

    expect(headers.get('set-cookie')).toBeNull();
    expect(body.name).toBe('a"set-cookie: a=b');
  });
});

describe('bounds', () => {
  const large = randomBytes(2 * mebibyte + 1);

  test('a file that is too large is refused, and nothing of it stays', async () => {
    const tenant = await newTenant(platform);
    const form = new FormData();
    form.set('file', new Blob([large]), 'large');

    const inForm = await sendForm(tenant, form);
    const announced = openRaw(platform.url);
    announced.send(
      `POST /api/files HTTP/1.1\r\nhost: x\r\nx-api-key: ${tenant.key}\r\ncontent-length: ${1024 * mebibyte}\r\n\r\n`,
    );
    const [first] = await announced.answers(1);

    expect(inForm).toMatchObject({ status: 413, body: { error: 'payload_too_large' } });
    // Before a byte of it has come.
    expect(first).toMatchObject({ status: 413, body: { error: 'payload_too_large' } });
    announced.destroy();
    expect((await tenant.get('/api/files')).body.total).toBe(0);
  });

  test('a body without a length is read no further than its bound', async () => {
    const tenant = await newTenant(platform);
    const connection = openRaw(platform.url);
    const size = large.length.toString(16);
    connection.send(
      `POST /api/files HTTP/1.1\r\nhost: x\r\nx-api-key: ${tenant.key}\r\ntransfer-encoding: chunked\r\n\r\n${size}\r\n`,
    );
    connection.send(large);

    const [answer] = await connection.closed();

    expectRefusal(answer!, 413, 'payload_too_large');
  });

  test('an organization has no more files, and no more bytes, than it may have', async () => {
    const [many, big] = [await newTenant(platform), await newTenant(platform)];
    const all = await Promise.all(Array.from({ length: 14 }, (_, i) => keep(many, `${i}`)));
    const bytes = (i: number) => Buffer.alloc(1.9 * mebibyte, i);
    const two = [await keep(big, bytes(1)), await keep(big, bytes(2))];

    expect(Map.groupBy(all, ({ status }) => status).get(201)).toHaveLength(10);
    expectRefusal(all.find(({ status }) => status !== 201)!, 409, 'conflict');
    expect(two.map(({ status }) => status)).toEqual([201, 201]);
    expectRefusal(await keep(big, bytes(3)), 409, 'conflict');
    await big.delete(`/api/files/${two[0]?.body.id}`);
    expect((await keep(big, bytes(3))).status).toBe(201);
  });
});

describe('a malformed upload leaves nothing', () => {
  const boundary = 'xXxXx';
  const part = (name: string, file = '') =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n`;
  const file = part('file', '; filename="a.txt"');

  const sendParts = (
    tenant: Tenant,
    body: string,
    type = `multipart/form-data; boundary=${boundary}`,
  ) =>
    tenant.send('POST', '/api/files', {
      body: Buffer.from(body),
      headers: { 'content-type': type },
    });

  test.each<[string, string, string?]>([
    ['a form that is cut off in its file', `${file}half of a`],
    ['a form that is cut off after its file', `${file}whole\r\n--${boundary}`],
    ['a form without a file', `${part('a')}b\r\n--${boundary}--\r\n`],
    ['a form of two files', `${file}one\r\n${file}two\r\n--${boundary}--\r\n`],
    [
      'a form of a thousand parts',
      `${file}one\r\n${`${part('a')}b\r\n`.repeat(1_000)}--${boundary}--\r\n`,
    ],
    [
      'a thousand parts before the file',
      `${`${part('a')}b\r\n`.repeat(1_000)}${file}one\r\n--${boundary}--\r\n`,
    ],
    ['a form without a boundary', `${file}one\r\n--${boundary}--\r\n`, 'multipart/form-data'],
    ['no form at all', 'just text'],
    ['an empty form', ''],
  ])('%s', async (_what, body, type) => {
    const tenant = await newTenant(platform);

    expectInvalid(await sendParts(tenant, body, type), 'body');

    expect((await tenant.get('/api/files')).body.total).toBe(0);
    expect(stored(tenant)).toBe(0);
  });

  embeddedTest('a client that goes away in the middle', async () => {
    const tenant = await newTenant(platform);
    const connection = openRaw(platform.url);
    connection.send(
      `POST /api/files HTTP/1.1\r\nhost: x\r\nx-api-key: ${tenant.key}\r\ncontent-length: 1000000\r\n\r\n${'a'.repeat(1_000)}`,
    );
    await waitFor(() => arriving().length > 0, { describe: 'the file is arriving' });

    connection.destroy();

    await waitFor(() => arriving().length === 0, { describe: 'nothing is left of it' });
    expect((await tenant.get('/api/files')).body.total).toBe(0);
  });

  test('a compressed body is refused, because its bytes would not be those of the file', async () => {
    const tenant = await newTenant(platform);

    const answer = await keep(tenant, png, { headers: { 'content-encoding': 'gzip' } });

    expectRefusal(answer, 415, 'unsupported_media_type');
  });
});

describe('storage that fails', () => {
  test.runIf(isOnCluster)('is 502, and the file can be sent again', async () => {
    const tenant = await newTenant(platform);
    storage.refuseWith(500);
    onTestFinished(() => storage.refuseWith(null));

    expectRefusal(await keep(tenant, png), 502, 'upstream_unavailable');
    expect((await tenant.get('/api/files')).body.total).toBe(0);
    storage.refuseWith(null);

    const { status, body } = await keep(tenant, png);
    expect(status).toBe(201);
    storage.refuseWith(500);
    expect((await tenant.delete(`/api/files/${body.id}`)).status).toBe(204);
    expect((await tenant.get('/api/files')).body.total).toBe(0);
  });

  test.runIf(isOnCluster)('none: a cluster without shared storage keeps no files', async () => {
    const without = await startPlatform();
    onTestFinished(() => without.stop());
    const tenant = await newTenant(without);

    expectRefusal(await keep(tenant, png), 409, 'conflict');
  });
});
