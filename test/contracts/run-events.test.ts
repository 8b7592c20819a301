/** Events from outside, on every database: how they are stored, and for how long. */
import { describe, expect, test } from 'vitest';
import { composeRunEvents } from '../../src/composition/run-events.ts';
import { deleteOldEvents } from '../../src/run-events/retention.ts';
import { engines } from '../support/databases.ts';
import { completed, jobsWorld } from '../support/jobs-world.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

describe.each(await engines())('on $name', (engine) => {
  async function eventsWorld() {
    const world = await jobsWorld(engine);
    const { database, clock } = world;
    const runEvents = composeRunEvents(world);
    const sender = { organizationId: 'default', owner: world.caller.keyId };
    return {
      ...world,
      runEvents,
      /** Sends an event; its id. */
      async send(fields: { key?: string; jobId?: string; idempotencyKey?: string } = {}) {
        const { key = null, jobId = null, idempotencyKey } = fields;
        const sent = { event: 'order.paid', key, jobId, data: 1 };
        return (await runEvents.send({ ...sender, idempotencyKey }, sent)).eventId;
      },
      deleteOld: () => deleteOldEvents({ database, clock }),
      async stored() {
        const rows = await database.read.kysely
          .selectFrom('received_events')
          .select('id')
          .execute();
        return rows.map(({ id }) => id).toSorted();
      },
    };
  }

  describe('retention', () => {
    test('keeps an event while a job that was accepted before it has not ended', async () => {
      const world = await eventsWorld();
      await world.send();
      const job = await world.submit();
      const kept = await world.send();
      world.clock.advance(2 * minute);

      await world.deleteOld();
      const whileQueued = await world.stored();
      await world.attempt(job.id, completed());
      await world.deleteOld();

      expect(whileQueued).toEqual([kept]);
      expect(await world.stored()).toEqual([]);
    });

    test('deletes events of organizations without unended jobs, and of no others', async () => {
      const world = await eventsWorld();
      const { organizationId, keyId } = await world.callerOf('other');
      await world.submit();
      const kept = await world.send();
      const sent = { event: 'order.paid', key: null, jobId: null, data: 1 };
      await world.runEvents.send({ organizationId, owner: keyId }, sent);
      world.clock.advance(2 * minute);

      await world.deleteOld();

      expect(await world.stored()).toEqual([kept]);
    });

    test('deletes an event for one job when that job has ended', async () => {
      const world = await eventsWorld();
      const [job, older] = [await world.submit(), await world.submit()];
      await world.send({ jobId: job.id });
      const kept = await world.send({ jobId: older.id });
      world.clock.advance(2 * minute);
      await world.attempt(job.id, completed());

      await world.deleteOld();

      expect(await world.stored()).toEqual([kept]);
    });

    test('leaves events of the last minute, whose jobs may not be visible yet', async () => {
      const world = await eventsWorld();
      const id = await world.send();

      await world.deleteOld();

      expect(await world.stored()).toEqual([id]);
    });

    test('forgets Idempotency-Keys after 24 hours', async () => {
      const world = await eventsWorld();
      const keys = () =>
        world.database.read.kysely.selectFrom('event_idempotency_keys').selectAll().execute();
      const first = await world.send({ idempotencyKey: 'one' });
      world.clock.advance(day - minute);
      await world.deleteOld();
      const again = await world.send({ idempotencyKey: 'one' });
      world.clock.advance(minute + 1);

      const anew = await world.send({ idempotencyKey: 'one' });
      await world.send({ idempotencyKey: 'two' });
      const taken = await keys();
      world.clock.advance(day + 1);
      await world.deleteOld();

      expect(again).toBe(first);
      expect(anew).not.toBe(first);
      expect(taken).toHaveLength(2);
      expect(await keys()).toEqual([]);
    });
  });
});
