/**
 * Builds the platform from its parts, starts it, stops it in the mirrored order. What it is made of is
 * put together in composition/. Tests start it through the same door.
 */

import { setTimeout as elapsed } from 'node:timers/promises';
import { startBackground } from './composition/background.ts';
import { metricsSource } from './composition/metrics-source.ts';
import type { Parts } from './composition/parts.ts';
import { registerRoutes } from './composition/routes.ts';
import { composeSlices } from './composition/slices.ts';
import type { Config } from './config.ts';
import { prepareDrain } from './http/drain.ts';
import { refuseUnknown } from './http/guarded.ts';
import { startHealth } from './http/health.ts';
import { createOpenApi } from './http/openapi.ts';
import { createMemoryRateLimiter } from './http/rate-limit.ts';
import { rememberRoutes } from './http/routes-known.ts';
import { createServer, type Server } from './http/server.ts';
import { jobQueues } from './jobs/recover.ts';
import { systemClock } from './kernel/clock.ts';
import { reservedCategories } from './skills/sources/skill-shape.ts';

/** Hints that are looked up at a time; what is sent at a time is the deliverer's own business. */
const deliveriesLookedUp = 1_000;
/** After the runs' grace: for those that were told to stop, before they are killed. */
const abortedRunsMs = 1_000;
/** For what is still to be recorded then. */
const lastWritesMs = 2_000;

export interface App {
  readonly server: Server;
  /** Where it listens: `http://127.0.0.1:3000`. */
  readonly address: string;
  /** Stops taking work, lets runs finish within their grace, hands back the others, closes everything. */
  stop(): Promise<void>;
}

export async function startApp(parts: Parts): Promise<App> {
  const { config, version, database, queue, executors, log, clock = systemClock } = parts;
  const limiter = parts.limiter ?? createMemoryRateLimiter(clock);
  // One process writes to an embedded database; in a shared one each has counts of its own.
  const writer = config.isEmbedded ? 'embedded' : `${process.pid}-${clock.now().toString(36)}`;

  const slices = await composeSlices(parts, clock, writer);
  const { metrics, workers, performer, recovery, mappings, outgoing } = slices;
  const health = startHealth(
    [
      { name: 'database', isCritical: true, check: () => database.ping() },
      { name: 'queue', isCritical: true, check: async () => assertTrue(queue.isConnected()) },
      {
        name: 'executors',
        isCritical: false,
        check: async () => assertTrue(executors.stats().executors > 0),
      },
    ],
    clock,
  );

  const stopping = new AbortController();
  const server = createServer(log, metrics.http);
  const drain = prepareDrain(server);
  const unmatched = rememberRoutes(server, reservedCategories);
  const source = metricsSource(parts);

  /** Registered again on a server that never listens, to document them. */
  const routes = (target: Server): void =>
    registerRoutes(target, {
      parts,
      slices,
      clock,
      limiter,
      health,
      source,
      document: () => document(),
      unmatched,
      stopping: stopping.signal,
    });
  const document = createOpenApi(version, routes);
  routes(server);
  refuseUnknown(server, unmatched);

  // The database of this process alone: whatever is active in it, nobody runs any more.
  if (config.isEmbedded) {
    await recovery.endOrphans();
    await outgoing.recovery.endOrphans();
  }
  // Listening first: a port that is taken ends the start before any work was begun.
  const address = await listen(server, config);
  for (const name of jobQueues) {
    workers.set(
      name,
      queue.consume(name, config.workerConcurrency, (id) => performer.perform(id)),
    );
  }
  const consumers = [
    ...workers.values(),
    queue.consume('webhooks', deliveriesLookedUp, (id) => outgoing.deliverer.take(id)),
    outgoing.deliverer,
  ];
  const tasks = startBackground(parts, slices, clock, writer);

  return {
    server,
    address,
    async stop() {
      const graceEnds = clock.monotonic() + config.shutdownGraceMs;
      const idle = Promise.all(consumers.map((consumer) => consumer.stop()));
      stopping.abort();
      await drain(config.shutdownGraceMs);
      await mappings.stop();
      await Promise.race([idle, elapsed(Math.max(0, graceEnds - clock.monotonic()))]);
      performer.handBack();
      outgoing.deliverer.breakOff();
      await executors.stop(abortedRunsMs);
      await Promise.race([idle, elapsed(lastWritesMs)]);
      await Promise.all(tasks.map((task) => task.stop()));
      await outgoing.close();
      health.stop();
      await queue.close();
      await database.close();
    },
  };
}

function assertTrue(holds: boolean): void {
  if (!holds) throw new Error('The probe found it down');
}

/** Listens; whoever started the platform says where, so Fastify need not. */
async function listen(server: Server, { host, port }: Config): Promise<string> {
  const { level } = server.log;
  server.log.level = 'silent';
  try {
    return await server.listen({ host, port });
  } finally {
    server.log.level = level;
  }
}
