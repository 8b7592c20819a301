/** Erasure of a user in events and deliveries, on every database, where its process dies on the way. */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/database.ts';
import { newId } from '../../src/kernel/ids.ts';
import { eraseDeliveries, eraseEvents } from '../../src/user-data/erase-events.ts';
import { engines } from '../support/databases.ts';

const user = { organizationId: 'default', userId: 'alice' };
const isLate = () => false;

/** An event about a conversation of the user, and a delivery that was made of it. */
async function told(database: Database, data = { conversation_id: newId(), user_id: 'alice' }) {
  const event_id = newId();
  const event = 'conversation.created';
  const common = { agent_id: 'default', created_at: 0 };
  await database.write(async (tx) => {
    const row = { id: event_id, organization_id: 'default', type: event };
    await tx.insert('events', [{ ...common, ...row, data: JSON.stringify(data) }]);
    await tx.insert('webhook_deliveries', [
      {
        ...{ id: newId(), webhook_id: newId(), event_id, event, status: 'delivered' },
        ...{ attempts: 1, lost: 0, epoch: 1, due_at: null, started_at: 0, is_test: 0 },
        ...{ redelivery_of: null, created_at: 0, finished_at: 0 },
        body: `{"id":"${event_id}","data":${JSON.stringify(data)}}`,
        subject: data.conversation_id,
      },
    ]);
  });
  return data.conversation_id;
}

/** A database whose process dies before its write number `last + 1`. */
function dyingAfter(database: Database, last: number): Database {
  let writes = 0;
  return {
    ...database,
    async write(unit) {
      writes += 1;
      if (writes > last) throw new Error('the process died');
      return await database.write(unit);
    },
  };
}

async function left(database: Database): Promise<string[]> {
  const { kysely } = database.read;
  const events = await kysely.selectFrom('events').select('data as text').execute();
  const bodies = await kysely.selectFrom('webhook_deliveries').select('body as text').execute();
  return [...events, ...bodies].map(({ text }) => text).filter((text) => text.includes('alice'));
}

describe.each(await engines())('on $name', (engine) => {
  test('a repetition erases what is left, wherever the erasure before broke off', async () => {
    const database = await engine.emptied();
    let isDone = false;
    for (let last = 0; !isDone; last++) {
      await told(database);
      await told(database);
      isDone = await eraseEvents({ database: dyingAfter(database, last), isLate }, user).catch(
        () => false,
      );

      await eraseEvents({ database, isLate }, user);

      expect(await left(database)).toEqual([]);
    }
    const { kysely } = database.read;
    const events = await kysely.selectFrom('events').select('data').distinct().execute();
    expect(events).toEqual([{ data: '{"erased":true}' }]);
  });

  test('a delivery is erased also where a skill said what stands in place of erased data', async () => {
    const database = await engine.emptied();
    const said = { output: { data: { erased: true } } };
    const subject = await told(database, {
      ...{ conversation_id: newId(), user_id: 'alice' },
      ...said,
    });

    expect(await eraseDeliveries({ database, isLate }, [subject])).toBe(true);

    const { kysely } = database.read;
    const [delivery] = await kysely.selectFrom('webhook_deliveries').select('body').execute();
    expect(delivery?.body).not.toContain('alice');
  });
});
