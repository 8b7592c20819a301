/** The files and sessions of the console. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ConsoleFiles } from '../../src/apps/console/files.ts';
import { consoleFilesAt } from '../support/console-files.ts';
import { follow } from '../support/event-stream.ts';
import { manualClock } from '../support/manual-clock.ts';
import {
  adminSecret,
  type Platform,
  type PlatformOptions,
  startPlatform,
} from '../support/platform.ts';
import { isInstalled, migratedDatabase } from '../support/shared-servers.ts';
import { waitFor } from '../support/wait-for.ts';

const marked = { 'x-skillwright-console': '1' };
/** What a page of an organization sends with each request. */
const markedOf = (organization: string) => ({
  ...marked,
  'x-skillwright-organization': organization,
});
const hour = 3_600_000;
const hasPostgres = await isInstalled('PostgreSQL');

/** Files as a build leaves them. */
const files = mkdtempSync(join(tmpdir(), 'skillwright-console-'));
mkdirSync(join(files, 'assets'));
writeFileSync(join(files, 'index.html'), '<!doctype html><title>Console</title>');
writeFileSync(join(files, 'theme.js'), 'theme();');
writeFileSync(join(files, 'assets/index-abc.js'), 'run();');
writeFileSync(join(files, 'assets/index-abc.js.gz'), gzipSync('run(compressed);'));
writeFileSync(join(files, '.built-from'), 'sources');
afterAll(() => rmSync(files, { recursive: true, force: true }));

const start = (options: PlatformOptions = {}) =>
  startPlatform({
    ...options,
    parts: { ...options.parts, consoleFiles: consoleFilesAt(files) },
  });

let platform: Platform;
let key: string;
beforeAll(async () => {
  platform = await start();
  key = await platform.key();
});
afterAll(() => platform.stop());

/** Signs in; the headers of a request of that session. */
async function signedIn(secret: string, at = platform): Promise<Record<string, string>> {
  const answer = await at.request('POST', '/console/session', { body: { secret } });
  expect(answer.status).toBe(200);
  return { ...markedOf('default'), cookie: cookieOf(answer) };
}

const cookieOf = ({ headers }: { headers: Headers }) =>
  (headers.get('set-cookie') ?? '').split(';', 1)[0] as string;

describe('the files', () => {
  test('are where the address alone leads', async () => {
    const answer = await fetch(platform.url, { redirect: 'manual' });

    expect(answer.status).toBe(302);
    expect(answer.headers.get('location')).toBe('/console/');
  });

  test.each(['/console/', '/console/jobs', '/console/skills/text/v1.0/word-count'])(
    '%s is the page, which may load nothing from elsewhere',
    async (path) => {
      const { status, headers, text } = await platform.request('GET', path);

      expect(status).toBe(200);
      expect(text).toContain('<title>Console</title>');
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers.get('cache-control')).toBe('no-cache');
    },
  );

  test('that change their names with their content are kept by browsers', async () => {
    const { headers, text } = await platform.request('GET', '/console/assets/index-abc.js', {
      headers: { 'accept-encoding': 'identity' },
    });

    expect(text).toBe('run();');
    expect(headers.get('cache-control')).toMatch(/max-age=31536000.*immutable/);
  });

  test('are sent compressed to clients that accept that', async () => {
    const { headers, text } = await platform.request('GET', '/console/assets/index-abc.js', {
      headers: { 'accept-encoding': 'gzip' },
    });

    expect(headers.get('content-encoding')).toBe('gzip');
    expect(text).toBe('run(compressed);');
  });

  test('that keep their names are asked for again', async () => {
    const { headers, text } = await platform.request('GET', '/console/theme.js');

    expect(text).toBe('theme();');
    expect(headers.get('cache-control')).toBe('no-cache');
  });

  test.each([
    '/console/assets/none.js',
    '/console/none.js',
    '/console/.built-from',
    '/console/..%2f..%2fpackage.json',
    '/console/assets/..%2f.built-from',
  ])('%s is not found', async (path) => {
    const { status, body } = await platform.request('GET', path);

    expect(status).toBe(404);
    expect(body.error).toBe('not_found');
  });

  test.each(['/nope%ff', '/%', '/console/%ff', '/console%00', '/docs%zz'])(
    'are not where an unreadable path leads: %s is 400',
    async (path) => {
      const answer = await fetch(platform.url + path, { redirect: 'manual' });

      expect(answer.status).toBe(400);
      expect(((await answer.json()) as { error: string }).error).toBe('validation_error');
    },
  );

  test('are not there while they cannot be had, and the platform works', async () => {
    const { PlatformError } = await import('../../src/kernel/errors.ts');
    const without = await startPlatform({
      parts: {
        consoleFiles: {
          directoryFor() {
            throw new PlatformError('service_unavailable', 'The console could not be built');
          },
        } as unknown as ConsoleFiles,
      },
    });
    onTestFinished(() => without.stop());

    expect((await without.request('GET', '/console/')).status).toBe(503);
    expect((await without.request('GET', '/health')).status).toBe(200);
  });
});

describe('signing in', () => {
  test('with the admin secret opens everything', async () => {
    const headers = await signedIn(adminSecret);

    const session = await platform.request('GET', '/console/session', { headers });
    expect(session.body).toMatchObject({
      kind: 'administrator',
      organizations: expect.arrayContaining(['default']),
      scopes: ['*'],
    });
    expect((await platform.request('GET', '/admin/api-keys', { headers })).status).toBe(200);
    expect((await platform.request('GET', '/api/jobs', { headers })).status).toBe(200);
  });

  test('with an API key opens what that key opens', async () => {
    const narrow = await platform.key({ client_name: 'narrow', scopes: ['util'] });
    const headers = await signedIn(narrow);

    const session = await platform.request('GET', '/console/session', { headers });
    expect(session.body).toMatchObject({
      kind: 'api_key',
      client_name: 'narrow',
      organizations: ['default'],
      scopes: ['util'],
    });
    expect((await platform.request('GET', '/api/jobs', { headers })).status).toBe(200);
    const run = await platform.request('POST', '/api/text/v1.0/word-count', {
      headers,
      body: { text: 'a' },
    });
    expect(run.body.error).toBe('insufficient_scope');
    const admin = await platform.request('GET', '/admin/api-keys', { headers });
    expect(admin.status).toBe(401);
  });

  test.each(['wrong', `sk_${'a'.repeat(43)}`, `${adminSecret} `])(
    'with %j is refused',
    async (secret) => {
      const { status, body, headers } = await platform.request('POST', '/console/session', {
        body: { secret },
      });

      expect(status).toBe(401);
      expect(body.error).toBe('invalid_api_key');
      expect(headers.get('set-cookie')).toBeNull();
    },
  );

  test('gives a cookie that no script reads, no other site sends, and that holds no secret', async () => {
    const { headers, text } = await platform.request('POST', '/console/session', {
      body: { secret: key },
    });

    const cookie = headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/; HttpOnly/);
    expect(cookie).toMatch(/; SameSite=Strict/);
    expect(cookie).not.toMatch(/; Secure/);
    const [value = ''] = cookie.split(';');
    const content = Buffer.from(value.split('=')[1] ?? '', 'base64url').toString();
    for (const shown of [cookie, content, text]) expect(shown).not.toContain(key);
  });

  test('behind a balancer that ends TLS gives a cookie that is never sent without it', async () => {
    const { headers } = await platform.request('POST', '/console/session', {
      body: { secret: key },
      headers: { 'x-forwarded-proto': 'https' },
    });

    expect(headers.get('set-cookie')).toMatch(/; Secure/);
  });
});

describe('a session', () => {
  test('is not valid without the console’s own header', async () => {
    const { cookie = '' } = await signedIn(adminSecret);

    for (const path of ['/api/jobs', '/admin/api-keys']) {
      const { status, body } = await platform.request('GET', path, { headers: { cookie } });
      expect(status).toBe(401);
      expect(body.error).toBe('authentication_required');
    }
    const changed = await platform.request('POST', '/api/agents', {
      headers: { cookie },
      body: { id: 'forged' },
    });
    expect(changed.status).toBe(401);
  });

  test('cannot be forged or changed', async () => {
    const { cookie = '' } = await signedIn(key);
    const [name, value = ''] = cookie.split('=');
    const [content = '', signature] = value.split('.');
    const session = { kind: 'administrator', organization_id: 'default', expires_at: 9e15 };
    const forged = Buffer.from(JSON.stringify(session)).toString('base64url');

    for (const other of [
      `${forged}.${signature}`,
      `${forged}.`,
      forged,
      `${content}.${'A'.repeat(43)}`,
      '',
      '.',
    ]) {
      const headers = { ...markedOf('default'), cookie: `${name}=${other}` };
      expect((await platform.request('GET', '/api/jobs', { headers })).status).toBe(401);
      expect((await platform.request('GET', '/admin/api-keys', { headers })).status).toBe(401);
      expect((await platform.request('GET', '/console/session', { headers })).status).toBe(204);
    }
  });

  test('of a key ends with that key', async () => {
    const { id, plaintext_key } = (
      await platform.admin('POST', '/admin/api-keys', { client_name: 'brief', scopes: ['*'] })
    ).body;
    const headers = await signedIn(plaintext_key);
    expect((await platform.request('GET', '/api/jobs', { headers })).status).toBe(200);

    await platform.admin('DELETE', `/admin/api-keys/${id}`);

    const { status, body } = await platform.request('GET', '/api/jobs', { headers });
    expect(status).toBe(401);
    expect(body.error).toBe('invalid_api_key');
    expect((await platform.request('GET', '/console/session', { headers })).status).toBe(204);
  });

  test('is over for every cookie of it once it is signed out, and no other session is', async () => {
    const clock = manualClock();
    const own = await start({ clock });
    onTestFinished(() => own.stop());
    const first = await signedIn(adminSecret, own);
    const other = await signedIn(adminSecret, own);
    clock.advance(6 * hour + 1);
    const read = (headers: Record<string, string>) =>
      own.request('GET', '/console/session', { headers });
    const renewed = { ...markedOf('default'), cookie: cookieOf(await read(first)) };

    const answer = await own.request('DELETE', '/console/session', { headers: renewed });

    expect(answer.status).toBe(204);
    expect(cookieOf(answer)).toMatch(/=$/);
    for (const headers of [first, renewed]) {
      expect((await read(headers)).status).toBe(204);
      for (const path of ['/api/jobs', '/admin/api-keys']) {
        expect((await own.request('GET', path, { headers })).status).toBe(401);
      }
    }
    expect((await own.request('GET', '/admin/api-keys', { headers: other })).status).toBe(200);
    // Signing out again has no further effect.
    expect((await own.request('DELETE', '/console/session', { headers: first })).status).toBe(204);
  });

  test.skipIf(!hasPostgres)(
    'is over in every process within a second, with its open streams',
    async () => {
      const environment = { DATABASE_URL: await migratedDatabase() };
      const first = await start({ environment });
      onTestFinished(() => first.stop());
      const second = await start({ environment });
      onTestFinished(() => second.stop());
      const headers = await signedIn(adminSecret, first);
      const { job_id } = (
        await second.request('POST', '/api/util/v1.0/wait', { headers, body: { ms: 60_000 } })
      ).body;
      const stream = await follow(`${second.url}/api/jobs/${job_id}/events`, headers);
      expect(stream.status).toBe(200);

      await first.request('DELETE', '/console/session', { headers });

      const refused = await waitFor(
        async () => (await second.request('GET', '/api/jobs', { headers })).status === 401,
        // A second, and what the requests themselves take on a busy machine.
        { describe: 'the other process refuses the session', deadlineMs: 5_000 },
      );
      expect(refused).toBe(true);
      const events = await stream.ended;
      expect(events.some(({ data }) => data.status === 'completed')).toBe(false);
    },
  );

  test('lasts twelve hours, and is renewed by a request after six', async () => {
    const clock = manualClock();
    const own = await start({ clock });
    onTestFinished(() => own.stop());
    const headers = await signedIn(adminSecret, own);
    const read = (given = headers) => own.request('GET', '/console/session', { headers: given });
    expect((await read()).headers.get('set-cookie')).toBeNull();

    clock.advance(6 * hour + 1);
    const renewed = await read();
    clock.advance(6 * hour);

    expect((await read()).status).toBe(204);
    const fresh = { ...marked, cookie: cookieOf(renewed) };
    expect((await read(fresh)).status).toBe(200);
    expect((await own.request('GET', '/admin/api-keys', { headers: fresh })).status).toBe(200);
  });

  test('lasts seven days at most, with any number of renewals', async () => {
    const clock = manualClock();
    const own = await start({ clock });
    onTestFinished(() => own.stop());
    let headers = await signedIn(adminSecret, own);
    const begun = clock.now();
    let status = 200;
    for (let i = 0; i < 30 && status === 200; i++) {
      clock.advance(7 * hour);
      const answer = await own.request('GET', '/console/session', { headers });
      ({ status } = answer);
      if (status === 200) headers = { ...marked, cookie: cookieOf(answer) };
    }

    expect(status).toBe(204);
    expect(clock.now() - begun).toBeGreaterThan(6 * 24 * hour);
    expect(clock.now() - begun).toBeLessThan(8 * 24 * hour);
  });

  test('is valid after a restart, but not with another admin secret', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-console-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const at = (adminSecretThere: string) =>
      start({
        stores: 'embedded',
        environment: { DATA_DIR: directory },
        parts: { adminSecret: adminSecretThere },
      });
    const first = await at(adminSecret);
    const headers = await signedIn(adminSecret, first);
    await first.app.stop();

    const again = await at(adminSecret);
    expect((await again.request('GET', '/api/jobs', { headers })).status).toBe(200);
    await again.app.stop();

    const changed = await at('another-admin-secret');
    onTestFinished(() => changed.stop());
    expect((await changed.request('GET', '/api/jobs', { headers })).status).toBe(401);
  });

  test('reads without using up the limit of its key, and changes within it', async () => {
    const slow = await platform.key({ client_name: 'slow', rate_limit: 2 });
    const headers = await signedIn(slow);

    for (let i = 0; i < 5; i++) {
      expect((await platform.request('GET', '/api/jobs', { headers })).status).toBe(200);
    }
    const change = () =>
      platform.request('POST', '/api/util/v1.0/echo', { headers, body: { text: 'a' } });
    const statuses = [await change(), await change(), await change()].map(({ status }) => status);

    expect(statuses).toEqual([202, 202, 429]);
    const sent = await platform.request('GET', '/api/jobs', { key: slow });
    expect(sent.status).toBe(429);
  });

  test('of the administrator acts in the organization that each request names', async () => {
    const other = await platform.key({ client_name: 'other', organization_id: 'elsewhere' });
    const job = await platform.run(other, 'util/v1.0/echo', { text: 'there' });
    const path = `/api/jobs/${job.body.job_id}`;
    const here = await signedIn(adminSecret);
    const there = { ...here, ...markedOf('elsewhere') };

    expect((await platform.request('GET', path, { headers: here })).status).toBe(404);
    expect((await platform.request('GET', path, { headers: there })).status).toBe(200);
    // Neither page has changed the other's organization.
    expect((await platform.request('GET', path, { headers: here })).status).toBe(404);
  });

  test('of the administrator acts in no organization that does not exist, and makes none', async () => {
    const headers = { ...(await signedIn(adminSecret)), ...markedOf('nowhere') };

    const { status, body } = await platform.request('GET', '/api/jobs', { headers });

    expect(status).toBe(401);
    expect(body).toMatchObject({
      error: 'authentication_required',
      message: 'There is no organization “nowhere”',
    });
    const session = await platform.request('GET', '/console/session', { headers });
    expect(session.body.organizations).not.toContain('nowhere');
  });

  test('on a new platform acts in the organization that the first key will be of', async () => {
    const own = await start({ stores: 'embedded' });
    onTestFinished(() => own.stop());
    const headers = await signedIn(adminSecret, own);

    const session = await own.request('GET', '/console/session', { headers });

    expect(session.body.organizations).toEqual(['default']);
    expect((await own.request('GET', '/api/jobs', { headers })).status).toBe(200);
  });

  test.each([
    ['names another organization', markedOf('elsewhere'), /session is signed in to “default”/],
    ['names none, as a page of an older console', marked, /load the page again/],
  ])('of a key refuses a request that %s', async (_, named, message) => {
    const { cookie = '' } = await signedIn(key);
    const headers = { cookie, ...named };

    for (const [method, path, options] of [
      ['GET', '/api/jobs', {}],
      ['POST', '/api/util/v1.0/echo', { body: { text: 'a' } }],
    ] as const) {
      const { status, body } = await platform.request(method, path, { headers, ...options });
      expect(status).toBe(401);
      expect(body.error).toBe('authentication_required');
      expect(body.message).toMatch(message);
    }
  });

  test('of the administrator acts with a key of its own, which is listed', async () => {
    const headers = await signedIn(adminSecret);

    const run = await platform.request('POST', '/api/util/v1.0/echo', {
      headers: { ...headers, prefer: 'wait=10' },
      body: { text: 'a' },
    });

    expect(run.body).toMatchObject({ status: 'completed', user_id: 'console' });
    const keys = (await platform.admin('GET', '/admin/api-keys')).body;
    const own = keys.filter(
      (one: { client_name: string; organization_id: string }) =>
        one.client_name === 'console' && one.organization_id === 'default',
    );
    expect(own).toMatchObject([{ enabled: true, scopes: ['*'] }]);
  });

  test('of the administrator has one such key, with any names of other keys and any number of requests', async () => {
    const organization_id = 'busy';
    await platform.key({ client_name: 'console', organization_id, rate_limit: 1 });
    const headers = { ...(await signedIn(adminSecret)), ...markedOf(organization_id) };
    await platform.request('GET', '/api/jobs', { headers });
    const keys = async () =>
      (await platform.admin('GET', '/admin/api-keys')).body.filter(
        (one: Record<string, unknown>) =>
          one['organization_id'] === organization_id && one['rate_limit'] !== 1,
      );
    const [{ id }] = await keys();
    await platform.admin('DELETE', `/admin/api-keys/${id}`);

    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        platform.request('POST', '/api/util/v1.0/echo', { headers, body: { text: 'a' } }),
      ),
    );

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    const enabled = (await keys()).filter((one: { enabled: boolean }) => one.enabled);
    expect(enabled).toHaveLength(1);
  });

  test('yields to a key that is sent along', async () => {
    const headers = await signedIn(adminSecret);

    const { status } = await platform.request('GET', '/api/jobs', { key: 'sk_wrong', headers });

    expect(status).toBe(401);
  });

  test('of another platform on the same host has a cookie of its own, and both stay valid', async () => {
    const other = await start();
    onTestFinished(() => other.stop());
    const here = await signedIn(adminSecret);
    const there = await signedIn(adminSecret, other);
    // As a browser that has both sends them to both: it does not look at ports.
    const headers = { ...marked, cookie: `${here['cookie']}; ${there['cookie']}` };

    for (const one of [platform, other]) {
      const { status } = await one.request('GET', '/console/session', { headers });
      expect(status).toBe(200);
    }
    expect(here['cookie']?.split('=')[0]).not.toBe(there['cookie']?.split('=')[0]);
  });

  test('is ended in its browser by signing out', async () => {
    const headers = await signedIn(key);

    const answer = await platform.request('DELETE', '/console/session', { headers });

    expect(answer.status).toBe(204);
    expect(answer.headers.get('set-cookie')).toMatch(
      /skillwright_session_[0-9a-f]{8}=;.*Max-Age=0/,
    );
  });
});
