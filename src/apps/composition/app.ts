/**
 * Builds the platform from its parts, starts it, stops it in the mirrored order. The other files of
 * composition/ make the parts. Tests start it with the same function.
 */

import { setTimeout as elapsed } from 'node:timers/promises';
import { WatchedWrites } from '../../adapters/database/watched-writes.ts';
import { logRequests } from '../../adapters/http/access-log.ts';
import { ClientAddresses } from '../../adapters/http/client-address.ts';
import { compressAnswers } from '../../adapters/http/compress.ts';
import { allowOrigins } from '../../adapters/http/cors.ts';
import { Drain } from '../../adapters/http/drain.ts';
import { refuseUnknown } from '../../adapters/http/guarded.ts';
import { Health } from '../../adapters/http/health.ts';
import { createOpenApi } from '../../adapters/http/openapi.ts';
import { MemoryRateLimiter, type RateLimiter } from '../../adapters/http/rate-limit.ts';
import { RedisRateLimiter } from '../../adapters/http/rate-limit-redis.ts';
import { rememberRoutes } from '../../adapters/http/routes-known.ts';
import { createServer, type Server } from '../../adapters/http/server.ts';
import { OpenStreams } from '../../adapters/http/streams.ts';
import type { Config } from '../../core/config/config.ts';
import type { Role } from '../../core/config/readers.ts';
import { SkillSets } from '../../core/executors/skill-sets.ts';
import { reservedCategories } from '../../core/skills/field-checks.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { newId, setIdClock } from '../../kernel/ids.ts';
import type { Repeated } from '../../kernel/repeat.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { Reloads } from '../../platform/reloads/reload-turns.ts';
import { warnOfUnnamed } from '../../platform/remote-skills/change-organizations.ts';
import { closeSources } from '../../platform/remote-skills/remote-skills.ts';
import { describeEvents } from '../../platform/webhooks/described-events.ts';
import { startBackground } from './background.ts';
import { GaugeReader } from './gauges.ts';
import type { Parts } from './parts.ts';
import { probesOf } from './probes.ts';
import { composeReloads } from './reloads.ts';
import { registerRoutes } from './routes.ts';
import { composeSlices, type Slices } from './slices.ts';
import { Worker } from './worker.ts';

/** After the runs' grace: for the runs that were aborted, before they are killed. */
const abortedRunsMs = 1_000;
/** For the writes that are left after that. */
const lastWritesMs = 1_600;
/** For open requests, when runs have taken all of their grace. */
const leastDrainMs = 400;
/** The time to announce to clients that their connections close, before the server stops listening. */
const announceMaxMs = 1_000;
/** The time to close everything after the runs' grace, and the least share of it for each part. */
const closingMs = 3_500;
const leastMs = 200;

/** A run that has taken this long is probably not one that ends in a moment. */
const youngMs = 1_000;
const checkEveryMs = 25;

/** A running platform. */
export class App {
  readonly server: Server;
  /** Where it listens: `http://127.0.0.1:3000`. */
  readonly address: string;
  readonly reloads: Reloads;
  readonly #started: Started;
  #stopped: Promise<void> | undefined;

  constructor(server: Server, address: string, started: Started) {
    this.server = server;
    this.address = address;
    this.reloads = started.reloads;
    this.#started = started;
  }

  /** The file descriptor of the listening socket, which another process may inherit; Node does not document it. */
  listeningFd(): number {
    const { _handle: handle } = this.server.server as { _handle?: { fd: number } | null };
    if (typeof handle?.fd !== 'number' || handle.fd < 0)
      throw new Error('The server has no socket');
    return handle.fd;
  }

  /** Resolves when all runs under way are young, at the latest after the runs' grace. New runs begin meanwhile. */
  async untilRunsAreYoung(): Promise<void> {
    const { parts, slices, clock } = this.#started;
    const { running } = slices.jobs;
    const endsAt = clock.monotonic() + parts.config.shutdownGraceMs;
    while (running.oldestMs() > youngMs && clock.monotonic() < endsAt) await elapsed(checkEveryMs);
  }

  /** Stops taking work, lets runs finish within their grace, hands back the others, closes everything. */
  stop(): Promise<void> {
    this.#stopped ??= stop(this.#started);
    return this.#stopped;
  }
}

export async function startApp(given: Parts): Promise<App> {
  const sets = skillSetsOf(given);
  const writes = new WatchedWrites(given.database);
  const parts: Parts = { ...given, database: writes.database, executors: sets };
  const { config, cluster, log } = parts;
  const clock = parts.clock ?? cluster?.clock ?? systemClock;
  if (cluster !== null) setIdClock(() => clock.now());
  // One process writes to an embedded database; in a shared one each has counts of its own.
  const writer = config.isEmbedded ? 'embedded' : newId();

  const slices = await composeSlices(parts, clock, writer);
  const health = new Health(probesOf(parts, writes, slices.processes.cluster, clock), clock, log);
  const stopping = new AbortController();
  const reloads = composeReloads(parts, sets, slices);
  const { server, drain } = buildServer(
    { parts, writes, slices, reloads, clock, health },
    stopping.signal,
  );

  // An embedded platform has one process: no active job of its database is still being run.
  if (config.isEmbedded) {
    await slices.jobs.recovery.endOrphans();
    await slices.webhooks.recovery.endOrphans();
  }
  await warnOfUnnamed(slices.remoteSkills.remote);
  // Listening first: a port that is taken ends the start before any work was begun.
  const address = await listen(server, config, parts.listenFd ?? null);
  const worker = config.roles.has('worker') ? new Worker(parts, slices) : null;
  const tasks = startBackground(parts, slices, clock, writer);
  const started = { parts, slices, reloads, clock, health, stopping, drain, worker, tasks };
  return new App(server, address, started);
}

/** The executors, so that another set of skills can take the place of the first. */
function skillSetsOf({ executors, reloadExecutors }: Parts): SkillSets | null {
  if (executors === null) return null;
  const cannot = () => Promise.reject(new Error('the skills of this platform cannot be reloaded'));
  return new SkillSets(executors, reloadExecutors ?? cannot);
}

/** What is to be stopped. */
interface Started {
  readonly parts: Parts;
  readonly slices: Slices;
  readonly reloads: Reloads;
  readonly clock: Clock;
  readonly health: Health;
  readonly stopping: AbortController;
  readonly drain: Drain;
  readonly worker: Worker | null;
  readonly tasks: readonly Repeated[];
}

async function stop(started: Started): Promise<void> {
  const { parts, slices, clock, health, stopping, drain, tasks } = started;
  const { config, database, queue, executors, cluster } = parts;
  const graceEnds = clock.monotonic() + config.shutdownGraceMs;
  started.reloads.stop();
  const idle = started.worker?.stop();
  // The clients of a single process have no other one: it answers while its runs end. What it accepts meanwhile stays
  // queued.
  if (cluster === null) await endRuns(started, idle, graceEnds);
  stopping.abort();
  slices.embeddings?.embedder.stop();
  const deadlineMs = Math.max(leastDrainMs, graceEnds - clock.monotonic());
  const announceMs = Math.min(announceMaxMs, config.shutdownGraceMs / 8);
  await drain.drain({ deadlineMs, announceMs: cluster === null ? announceMs : null });
  health.stop();
  await slices.mappings.stop();
  if (cluster !== null) await endRuns(started, idle, graceEnds);
  await executors?.stop(abortedRunsMs);
  // A hanging store does not delay the stop: the sweep of the next process recovers what it missed.
  const endsBy = graceEnds + closingMs;
  const beforeEnd = (done: Promise<unknown> | undefined) =>
    withDeadline(done, Math.max(leastMs, endsBy - clock.monotonic()));
  await beforeEnd(Promise.all(tasks.map((task) => task.stop())));
  // Writes the counts since the last write; if that fails, they are lost.
  await beforeEnd(slices.recorder.flush().catch(() => {}));
  // If that fails, the calls of the last second are lost, which is permitted.
  await beforeEnd(slices.triggerCalls.flush().catch(() => {}));
  await slices.webhooks.sender.close();
  await closeSources(slices.remoteSkills.remote);
  await slices.remoteSkills.accounts.close();
  await queue.close();
  // If it fails, the other processes count this one as live for a little longer.
  await beforeEnd(slices.processes.cluster?.leave().catch(() => {}));
  await beforeEnd(slices.blobs?.close());
  await beforeEnd(database.close());
  await cluster?.redis.close();
}

/** Waits for the runs until `graceEnds`, and hands back the others. */
async function endRuns(
  { parts, clock, worker }: Started,
  idle: Promise<void> | undefined,
  graceEnds: number,
): Promise<void> {
  const ended = idle?.then(() => true) ?? true;
  const graceMs = Math.max(0, graceEnds - clock.monotonic());
  if (await withDeadline(Promise.resolve(ended), graceMs)) return;
  worker?.breakOff();
  await parts.executors?.stop(abortedRunsMs);
  await withDeadline(idle, lastWritesMs);
}

/** The server with all its routes; it does not listen yet. */
function buildServer(
  built: Pick<Started, 'parts' | 'slices' | 'reloads' | 'clock' | 'health'> & {
    writes: WatchedWrites;
  },
  stopping: AbortSignal,
): { server: Server; drain: Drain } {
  const { parts, slices, clock } = built;
  const { config, log } = parts;
  const limits = {
    perAddress: config.connectionsPerAddressMax,
    stallMs: config.responseStallMs,
    uploadMs: config.fileUploadTimeoutMs,
    answerMs: config.responseTimeoutMs,
    unreadBytes: config.unreadAnswersMb * 1024 * 1024,
  };
  const clients = new ClientAddresses(config.trustedProxies);
  const server = createServer(log, slices.metrics.http, limits, clients);
  logRequests(server, log, config.accessLog === 'on');
  allowOrigins(server, config.corsOrigins, log, clock);
  compressAnswers(server);
  const drain = new Drain(server);
  const unmatched = rememberRoutes(server, reservedCategories);
  const liveOf = (role: Role) => slices.processes.cluster?.live(role) ?? 1;
  const limiter = parts.limiter ?? limiterOf(parts, clock, () => liveOf('api'));
  const streams = openStreams(parts);
  const { embeddings, webhooks } = slices;
  const sources = { dispatcher: webhooks.dispatcher, embeddings, writes: built.writes };
  const gauges = new GaugeReader(parts, clock, sources, liveOf);

  /** Registered again on a server that never listens, to document them. */
  const routes = (target: Server): void =>
    registerRoutes(target, {
      parts,
      slices,
      clock,
      state: { reloads: built.reloads, health: built.health, gauges, stopping },
      http: { limiter, streams, document: () => document(), unmatched },
    });
  const document = createOpenApi(parts.version, routes, describeEvents);
  routes(server);
  refuseUnknown(server, unmatched);
  return { server, drain };
}

function openStreams({ config, cluster }: Parts): OpenStreams {
  const limits = {
    perKey: config.streamsPerKeyMax,
    perOrganization: config.streamsPerOrganizationMax,
    perAddress: config.streamsPerAddressMax,
  };
  return new OpenStreams(limits, cluster?.bus ?? null);
}

function limiterOf({ cluster, log }: Parts, clock: Clock, processes: () => number): RateLimiter {
  const local = new MemoryRateLimiter(clock);
  return cluster === null ? local : new RedisRateLimiter(cluster.redis, local, processes, log);
}

/** Listens. Fastify's own line is not logged, because `run.ts` logs the address. */
async function listen(server: Server, { host, port }: Config, fd: number | null): Promise<string> {
  const { level } = server.log;
  server.log.level = 'silent';
  try {
    return await server.listen(fd === null ? { host, port } : inherited(fd));
  } finally {
    server.log.level = level;
  }
}

/** Fastify passes it on to Node. With `localhost` it would listen on further sockets. */
function inherited(fd: number): { host: string } {
  return Object.assign({ host: '127.0.0.1' }, { fd });
}
