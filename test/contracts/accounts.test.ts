/** Tokens of accounts at servers outside, in several processes and on every database. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseAllowList } from '../../src/adapters/egress/allow-list.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { Lazy } from '../../src/kernel/lazy.ts';
import { Accounts } from '../../src/platform/remote-skills/accounts/accounts.ts';
import { OauthClient } from '../../src/platform/remote-skills/accounts/oauth-client.ts';
import { AccountTokens } from '../../src/platform/remote-skills/accounts/tokens.ts';
import type { McpSettings } from '../../src/platform/remote-skills/mcp/settings.ts';
import type { RemoteKind } from '../../src/platform/remote-skills/remote-kind.ts';
import { insertSource } from '../../src/platform/remote-skills/sources.store.ts';
import { RemoteSkills } from '../../src/platform/remote-skills/state.ts';
import { protect, startAuthorizationServer } from '../support/authorization-server.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { startMcpServer } from '../support/mcp-server.ts';

const hour = 3_600_000;
const caller = { organizationId: 'acme', scopes: ['*'] };
const base = 'http://127.0.0.1:3000';

describe.each(await engines())('on $name', (engine) => {
  /** Two processes that share a database and a key, and an account that is connected. */
  async function world(operationMs = 20_000) {
    const clock = manualClock();
    const place = await engine.emptiedPlace();
    const database = await place.open();
    const other = engine.name === 'SQLite' ? database : await place.open();
    const server = await startMcpServer();
    const by = await startAuthorizationServer();
    protect(server, by);
    const allowed = parseAllowList('127.0.0.0/8');
    const oauth = new Lazy(async () => new OauthClient(allowed, operationMs));
    const key = randomBytes(32);
    const refreshed: string[] = [];
    const kind: RemoteKind = {
      kind: 'mcp',
      checkEveryMs: null,
      areOutputsChecked: false,
      async discover({ id }) {
        refreshed.push(id);
        return { views: [], knownViewers: 'all', about: {} };
      },
      call: async () => null,
      close: async () => {},
    };
    const config = { ...readConfig({}), publicUrl: base };
    const processWith = (on = database, cipher = new Cipher(Buffer.from(key))) => {
      const context = contextOf({ database: on, clock, config });
      const skills = new SkillRegistry(context);
      const remote = new RemoteSkills(context, { cipher, skills, kinds: new Map([['mcp', kind]]) });
      return {
        tokens: new AccountTokens(context, cipher, oauth),
        accounts: new Accounts(context, remote, oauth),
      };
    };
    const settings: McpSettings = {
      ...{ url: server.url, command: null, args: [], header_names: [], env_names: [] },
      ...{ oauth: null, timeout_ms: 1_000, idempotent_tools: [], trust_annotations: false },
    };
    const source = { id: 'the-source', name: 'tickets', url: server.url };
    await database.write((tx) =>
      insertSource(tx, {
        ...{ id: source.id, kind: 'mcp', name: source.name, settings: JSON.stringify(settings) },
        organizations: '["*"]',
        ...{ secrets: null, document: null, about: '{}', status: 'needs_authorization' },
        ...{ fault: null, fault_at: null, refreshed_at: null, created_at: 0, updated_at: 0 },
      }),
    );
    const [one, two] = [processWith(), processWith(other)];
    const connect = async ({ accounts } = one, sessionId = 'a-session') => {
      const where = { sessionId, base };
      const begun = await accounts.authorize(caller, 'tickets', where);
      const { params } = await by.agree(begun.authorization_url);
      return { ...params, state: params['state'] ?? '', sessionId };
    };
    await two.accounts.finish(caller, 'tickets', await connect());
    return { clock, database, by, source, one, two, connect, processWith, refreshed };
  }

  test('an authorization that one process began is completed by another', async () => {
    const { by, refreshed, one, source } = await world();
    expect(await one.tokens.tokenOf(source, 'acme')).toBe(by.given[0]);
    expect(await one.tokens.tokenOf(source, 'globex')).toBeUndefined();
    expect(refreshed).toEqual(['the-source']);
  });

  test('two processes ask for new tokens once, and both have them', async () => {
    const { by, clock, source, one, two } = await world();
    clock.advance(hour);
    const asked = [one, two, one, two].map(({ tokens }) => tokens.tokenOf(source, 'acme'));
    expect(new Set(await Promise.all(asked))).toEqual(new Set([by.given[1]]));
    expect(by.asked).toHaveLength(2);
  });

  test('a refresh that is late does not undo a newer connection', async () => {
    const { by, clock, source, one, two, connect } = await world();
    clock.advance(hour);
    const returned = await connect(two);
    const reconnected = Promise.withResolvers<void>();
    by.tokens = async (form) => {
      if (form.get('grant_type') === 'refresh_token') await reconnected.promise;
      return undefined;
    };
    const refreshing = one.tokens.tokenOf(source, 'acme');
    await expect.poll(() => by.asked.length).toBe(2);
    await two.accounts.finish(caller, 'tickets', returned);
    reconnected.resolve();
    const token = await refreshing;
    expect(await two.tokens.tokenOf(source, 'acme')).toBe(token);
    expect(by.isValid(`Bearer ${token}`)).toBe(true);
    expect(by.revoked).toContain(by.given.at(-1));
  });

  test('a token endpoint that hangs costs a sentence; the account stays', async () => {
    const { by, clock, source, one, two } = await world(1_000);
    clock.advance(hour);
    by.tokens = 'hang';
    await expect(one.tokens.tokenOf(source, 'acme')).rejects.toMatchObject({
      code: 'upstream_unavailable',
      retryable: true,
      message: expect.stringContaining('did not answer in time'),
    });
    by.tokens = 'well';
    expect(await two.tokens.tokenOf(source, 'acme')).toBe(by.given[1]);
  });

  test('a token is used to its end while no new one can be had', async () => {
    const { by, clock, source, one } = await world();
    clock.advance(hour - 30_000);
    by.tokens = 'broken';
    expect(await one.tokens.tokenOf(source, 'acme')).toBe(by.given[0]);
    clock.advance(30_000);
    await expect(one.tokens.tokenOf(source, 'acme')).rejects.toMatchObject({ retryable: true });
  });

  test('a process that ends while it asks for new tokens delays others for a minute', async () => {
    const { by, clock, database, source, two } = await world();
    clock.advance(hour);
    const until = clock.now() + 60_000;
    await database.write((tx) =>
      tx.kysely.updateTable('remote_accounts').set({ refreshing_until: until }).execute(),
    );
    const token = two.tokens.tokenOf(source, 'acme');
    await expect.poll(() => by.asked.length).toBe(1);
    clock.advance(60_000);
    expect(await token).toBe(by.given[1]);
  });

  test('a refresh token that is not taken any more ends the account, with who has to act where', async () => {
    const { by, clock, source, one, database } = await world();
    clock.advance(hour);
    by.withdrawAll();
    await expect(one.tokens.tokenOf(source, 'acme')).rejects.toMatchObject({
      code: 'missing_credentials',
      asksForAccount: true,
      message: expect.stringContaining(
        'The organization acme has no usable account at the server tickets: a person of it has to connect one in the console, under Accounts (http://127.0.0.1:3000/console/o/acme/accounts). ',
      ),
    });
    const row = await database.read.kysely
      .selectFrom('remote_accounts')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ status: 'needs_authorization', tokens: null });
    await expect(one.tokens.tokenOf(source, 'acme')).rejects.toMatchObject({
      asksForAccount: true,
    });
    expect(by.asked).toHaveLength(2);
  });

  test('a token without an end is used until it is refused', async () => {
    const { by, clock, source, one, connect } = await world();
    by.lifetime = undefined;
    await one.accounts.finish(caller, 'tickets', await connect());
    const [, token] = by.given;
    clock.advance(1_000 * hour);
    expect(await one.tokens.tokenOf(source, 'acme')).toBe(token);
    await one.tokens.refuse(source, 'acme', token);
    expect(await one.tokens.tokenOf(source, 'acme')).toBe(by.given[2]);
  });

  test('tokens that were stored under another key, or changed in the database, are not used', async () => {
    const { database, source, one, processWith, by } = await world();
    const other = processWith(database, new Cipher(randomBytes(32)));
    await expect(other.tokens.tokenOf(source, 'acme')).rejects.toMatchObject({
      code: 'missing_credentials',
      message: expect.stringContaining('another ENCRYPTION_KEY'),
    });
    await database.write((tx) =>
      tx.kysely.updateTable('remote_accounts').set({ organization_id: 'globex' }).execute(),
    );
    await expect(one.tokens.tokenOf(source, 'globex')).rejects.toThrow('cannot be decrypted');
    expect(by.asked).toHaveLength(1);
  });

  test('a client that the authorization server has forgotten is registered anew', async () => {
    const { by, clock, source, one, connect } = await world();
    await one.accounts.finish(caller, 'tickets', await connect());
    expect(by.registrations).toHaveLength(1);
    by.clients.clear();
    clock.advance(hour);
    await expect(one.tokens.tokenOf(source, 'acme')).rejects.toMatchObject({
      asksForAccount: true,
    });
    await one.accounts.finish(caller, 'tickets', await connect());
    expect(by.registrations).toHaveLength(2);
    // One that is not known there shows no way back, so a second try takes another client, too.
    const where = { sessionId: 'a-session', base };
    await one.accounts.authorize(caller, 'tickets', where);
    await one.accounts.authorize(caller, 'tickets', where);
    expect(by.registrations).toHaveLength(3);
  });

  test('a client that cannot be decrypted, or lost its secret, is registered anew', async () => {
    const { by, database, one, source, connect } = await world();
    await one.accounts.finish(caller, 'tickets', await connect());
    await database.write((tx) =>
      tx.kysely.updateTable('remote_oauth_clients').set({ client: 'not sealed' }).execute(),
    );
    await one.accounts.finish(caller, 'tickets', await connect());
    expect(by.registrations).toHaveLength(2);
    expect(await one.tokens.tokenOf(source, 'acme')).toBe(by.given.at(-1));
  });
});
