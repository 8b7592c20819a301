/** Signing secrets of webhooks at rest: encrypted, bound to their row, and of use after every change. */
import { describe, expect, test } from 'vitest';
import { SigningSecrets } from '../../src/adapters/database/signing-secrets.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { bodySignature } from '../../src/kernel/webhook-signature.ts';
import { engines } from '../support/databases.ts';
import { untilReadable } from '../support/outbox.ts';
import { type WebhooksWorld, webhooksWorld } from '../support/webhooks-world.ts';
import { anyWriter } from '../support/writers.ts';

const secret = 'a-secret-of-the-receiver';

const storedIn = ({ database }: WebhooksWorld) =>
  database.read.kysely
    .selectFrom('webhooks')
    .select(['id', 'secret', 'secret_sealed'])
    .orderBy('id')
    .execute();

/** Whether each of the requests was signed with the secret. */
const areSigned = ({ sent }: WebhooksWorld) =>
  sent.map(({ body, headers }) => headers['x-service-signature'] === bodySignature(secret, body));

describe.each(await engines())('on $name', (engine) => {
  test('a webhook signs with its secret, and its row does not show it', async () => {
    const world = await webhooksWorld(engine);
    const id = await world.webhook({ secret });

    await world.happen();
    await world.deliver();
    await world.webhooks.update(anyWriter(), id, { secret: `${secret}-2` });
    const [changed] = await storedIn(world);

    expect(areSigned(world)).toEqual([true]);
    expect(changed?.secret_sealed).toBe(1);
    expect(changed?.secret).toMatch(/^v1\./);
    expect(JSON.stringify(changed)).not.toContain(secret);
  });

  test('a secret that was stored without a key is encrypted, and signs as before', async () => {
    const world = await webhooksWorld(engine, { key: null });
    await world.webhook({ secret });
    await world.webhook({ secret });
    const before = await storedIn(world);
    const secrets = new SigningSecrets(world.database, new Cipher(Buffer.alloc(32, 1)), () => true);

    const sealed = [await secrets.sealStored(), await secrets.sealStored()];

    expect(before.map((row) => row.secret)).toEqual([secret, secret]);
    expect(sealed).toEqual([2, 0]);
    expect(JSON.stringify(await storedIn(world))).not.toContain(secret);
    const keyed = await world.process(1);
    await world.happen();
    await untilReadable(world.database);
    await keyed.dispatcher.dispatch();
    await world.quiet();
    expect(areSigned(world)).toEqual([true, true]);
  });

  /** A world in which each process says through `canAllOpen` whether all can decrypt, and its secrets. */
  async function sealing(canAllOpen: () => boolean) {
    const world = await webhooksWorld(engine, { canAllOpen });
    const cipher = new Cipher(Buffer.alloc(32, 1));
    return { world, secrets: new SigningSecrets(world.database, cipher, canAllOpen) };
  }

  test('while an older process cannot decrypt, secrets are stored as they are; they are encrypted after it has ended', async () => {
    let isOlderThere = true;
    const { world, secrets } = await sealing(() => !isOlderThere);
    const id = await world.webhook({ secret });
    await world.webhooks.update(anyWriter(), id, { secret: `${secret}-2` });

    const meanwhile = [await secrets.sealStored(), ...(await storedIn(world))];
    isOlderThere = false;
    const after = [await secrets.sealStored(), ...(await storedIn(world))];

    expect(meanwhile).toEqual([0, { id, secret: `${secret}-2`, secret_sealed: 0 }]);
    expect(after).toEqual([1, { id, secret: expect.stringMatching(/^v1\./), secret_sealed: 1 }]);
  });

  test('a secret that was copied to another row cannot be decrypted: the delivery fails with that reason', async () => {
    const world = await webhooksWorld(engine);
    await world.webhook({ secret });
    const [from] = await storedIn(world);
    const other = await world.webhook({ events: ['agent.error'] });
    await world.database.write((tx) =>
      tx.kysely
        .updateTable('webhooks')
        .set({ secret: from?.secret ?? '' })
        .where('id', '=', other)
        .execute(),
    );

    await world.happen('agent.error');
    await world.deliver();

    expect(world.sent).toEqual([]);
    const { data: deliveries } = await world.log.list('default', other, [], {
      limit: 5,
      offset: 0,
    });
    expect(deliveries[0]).toMatchObject({
      status: 'pending',
      attempts: [{ status: null, error: expect.stringContaining('cannot be decrypted') }],
    });
  });
});
