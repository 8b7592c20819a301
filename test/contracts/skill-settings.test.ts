/** Organizations' values of settings of skills, on every database. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/core/config/config.ts';
import { SkillSettings } from '../../src/core/skills/settings.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';

const skill = {
  id: 'the-id',
  category: 'web',
  version: 'v1.0',
  name: 'weather',
  config: {
    API_KEY: { secret: true, description: 'A key.' },
    REGION: { description: 'A region.', default: 'eu' },
  },
};
const secret = 'sk-of-the-service';
const environment = { REGION: 'of-the-environment', UNDECLARED: 'x' };

describe.each(await engines())('on $name', (engine) => {
  /** Two processes that share a database and a key; on SQLite two sets of verbs in one. */
  async function world() {
    const clock = manualClock();
    const place = await engine.emptiedPlace();
    const database = await place.open();
    const other = engine.name === 'SQLite' ? database : await place.open();
    const key = randomBytes(32);
    const processWith = (cipher: Cipher | null, on = database) =>
      new SkillSettings(
        contextOf({
          database: on,
          clock,
          config: { ...readConfig({}), skillEnvironment: environment },
        }),
        cipher,
      );
    return {
      clock,
      database,
      processWith,
      settings: processWith(new Cipher(key)),
      elsewhere: processWith(new Cipher(Buffer.from(key)), other),
    };
  }

  test("the organization's value is before the environment's, and that before the default", async () => {
    const { settings } = await world();

    expect(await settings.forRun('acme', skill)).toMatchObject({
      missing: expect.stringContaining('API_KEY'),
    });
    await settings.change('acme', skill, { API_KEY: secret });
    expect(await settings.forRun('acme', skill)).toEqual({
      values: { API_KEY: secret, REGION: 'of-the-environment' },
      secrets: [secret],
    });
    await settings.change('acme', skill, { REGION: 'us' });
    expect(await settings.forRun('acme', skill)).toMatchObject({ values: { REGION: 'us' } });
    expect(await settings.forRun('globex', skill)).toHaveProperty('missing');
  });

  test('a change is known elsewhere within a second', async () => {
    const { settings, elsewhere, clock } = await world();
    await settings.change('acme', skill, { API_KEY: secret });
    expect(await elsewhere.forRun('acme', skill)).toMatchObject({ secrets: [secret] });

    await settings.change('acme', skill, { API_KEY: 'another-key' });
    await clock.advance(1_000);

    expect(await elsewhere.forRun('acme', skill)).toMatchObject({ secrets: ['another-key'] });
    await settings.clear('acme', skill);
    expect(await settings.forRun('acme', skill)).toHaveProperty('missing');
  });

  test('without the key nothing is stored, and what was stored stops runs with a reason', async () => {
    const { settings, processWith } = await world();
    await settings.change('acme', skill, { API_KEY: secret });
    const keyless = processWith(null);
    const otherKey = processWith(new Cipher(randomBytes(32)));

    await expect(keyless.change('acme', skill, { REGION: 'us' })).rejects.toMatchObject({
      code: 'conflict',
    });
    for (const [one, reason] of [
      [keyless, 'ENCRYPTION_KEY is not set'],
      [otherKey, 'another ENCRYPTION_KEY'],
    ] as const) {
      expect(await one.forRun('acme', skill)).toEqual({ missing: expect.stringContaining(reason) });
      const [shown] = await one.show('acme', skill);
      expect(shown).toMatchObject({ source: 'organization', value: null });
      expect(shown?.fault).toContain(reason);
      expect(await one.countUnusable()).toBe(1);
    }
    expect(await settings.countUnusable()).toBe(0);
  });

  test('a value that is moved to another row, or is no longer secret there, cannot be read', async () => {
    const { database, settings } = await world();
    await settings.change('acme', skill, { API_KEY: secret });

    await database.write((tx) =>
      tx.kysely
        .updateTable('skill_settings')
        .set({ organization_id: 'globex' })
        .where('organization_id', '=', 'acme')
        .execute(),
    );
    expect(await settings.forRun('globex', skill)).toHaveProperty('missing');
    await settings.change('acme', skill, { API_KEY: secret });
    await database.write((tx) =>
      tx.kysely.updateTable('skill_settings').set({ secret: 0 }).execute(),
    );
    const config = { API_KEY: { description: 'A key.' } };
    const [shown] = await settings.show('acme', { ...skill, config });
    expect(shown).toMatchObject({ value: null, fault: expect.stringContaining('decrypted') });
  });

  test('a value that was set as a secret is not shown where a version declares it as none', async () => {
    const { settings } = await world();
    await settings.change('acme', skill, { API_KEY: secret });

    const open = { ...skill, config: { API_KEY: { description: 'A key.' } } };
    expect((await settings.show('acme', open))[0]).toMatchObject({ value: null, fault: null });
    expect(await settings.forRun('acme', open)).toMatchObject({ secrets: [secret] });
  });
});
