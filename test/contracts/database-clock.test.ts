/** The clock that processes share is PostgreSQL's, as exact as the network lets it be. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { DatabaseClock } from '../../src/adapters/database/clock.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { engines } from '../support/databases.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const [, postgres] = await engines();
/** What the late answers of these tests would put it wrong by. */
const wrongMs = 100;
/** Of this machine, whose clock PostgreSQL's is. */
const offBy = (now: number) => Math.abs(now - Date.now());

async function clockThroughProxy(disorder: (proxy: Proxy) => void) {
  const place = await postgres!.place();
  const { port } = new URL(place.at);
  const proxy = await startTcpProxy(() => Number(port));
  onTestFinished(() => proxy.close());
  const through = place.at.replace(`:${port}/`, `:${proxy.port}/`);
  const database = await openPostgres(through, createLogger('silent'), { connectionsMax: 1 });
  onTestFinished(() => database.close());
  // Connected before: the clock alone is to feel the disorder.
  await database.ping();
  disorder(proxy);
  const clock = new DatabaseClock(database);
  await clock.measure();
  return { proxy, database, clock };
}

type Proxy = Awaited<ReturnType<typeof startTcpProxy>>;

describe.skipIf(postgres === undefined)('the clock of the database', () => {
  test('is right within half the duration of the quickest answer', async () => {
    const { clock } = await clockThroughProxy(() => {});

    expect(offBy(clock.now())).toBeLessThan(wrongMs);
  });

  test.each(['requests', 'answers'] as const)(
    'is not put wrong when %s are late, nor by waiting for a connection',
    async (late) => {
      const { proxy, database, clock } = await clockThroughProxy(() => {});
      proxy.delay(300, late);
      // Its only connection is in use meanwhile.
      const busy = database.write((tx) =>
        tx.insert('organizations', [{ id: late, created_at: 0 }]),
      );

      await clock.measure();

      await busy;
      expect(offBy(clock.now())).toBeLessThan(wrongMs);
    },
  );

  test('that was first read from late answers is corrected by the first quick one', async () => {
    const { proxy, clock } = await clockThroughProxy((proxy) => proxy.delay(300, 'answers'));
    expect(offBy(clock.now())).toBeGreaterThan(wrongMs);
    await proxy.heal();

    await clock.measure();

    expect(offBy(clock.now())).toBeLessThan(wrongMs);
  });
});
