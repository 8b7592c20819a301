/**
 * `/health` (specification: Health and metrics; docs/decisions/health-and-metrics.md): answers at once, also while
 * a dependency hangs, because it returns the last results of background probes. A probe that does not end
 * in time has failed.
 */
import { Type } from 'typebox';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import { refusals } from './refusals.ts';
import { Words } from './schemas.ts';
import type { Server } from './server.ts';

export type HealthStatus = 'ok' | 'degraded' | 'unhealthy';

/** A check of a dependency. When a critical one fails, requests cannot be served. */
export interface Probe {
  readonly name: string;
  readonly isCritical: boolean;
  check(): Promise<void>;
}

const everyMs = 1_000;
const deadlineMs = 2_000;

export interface Health {
  status(): HealthStatus;
  /** The names of the failing probes. */
  failing(): string[];
  uptimeSeconds(): number;
  stop(): void;
}

/** Probes at once and then every second. Each failure and each recovery is logged once. */
export function startHealth(probes: readonly Probe[], clock: Clock, log: Logger): Health {
  const startedAt = clock.monotonic();
  const failing = new Map<string, Probe>();
  const underWay = new Set<Probe>();

  async function run(probe: Probe): Promise<void> {
    if (underWay.has(probe)) return;
    underWay.add(probe);
    const timer = setTimeout(() => fail(probe, 'it does not answer'), deadlineMs);
    try {
      await probe.check();
      if (failing.delete(probe.name)) log.info({ probe: probe.name }, 'a probe holds again');
    } catch (error) {
      fail(probe, (error as Error).message);
    } finally {
      clearTimeout(timer);
      underWay.delete(probe);
    }
  }

  function fail(probe: Probe, reason: string): void {
    if (!failing.has(probe.name)) {
      const means = probe.isCritical ? 'unhealthy' : 'degraded';
      log.warn({ probe: probe.name, reason }, `a probe fails: /health is ${means}`);
    }
    failing.set(probe.name, probe);
  }

  const probeAll = () => {
    for (const probe of probes) void run(probe);
  };
  probeAll();
  const interval = setInterval(probeAll, everyMs);
  interval.unref();

  return {
    status() {
      if (failing.size === 0) return 'ok';
      return [...failing.values()].some((probe) => probe.isCritical) ? 'unhealthy' : 'degraded';
    },
    failing: () => [...failing.keys()],
    uptimeSeconds: () => Math.floor((clock.monotonic() - startedAt) / 10) / 100,
    stop: () => clearInterval(interval),
  };
}

const example = { status: 'ok', version: '1.0.0', uptime: 42.5 };
const HealthRecord = Type.Object(
  {
    status: Words(['ok', 'degraded', 'unhealthy']),
    version: Type.String(),
    uptime: Type.Number({ description: 'Seconds since the process started.' }),
  },
  { title: 'Health' },
);

export function healthRoutes(
  server: Server,
  { health, version }: { health: Health; version: string },
) {
  server.get(
    '/health',
    {
      schema: {
        tags: ['Operations'],
        security: [],
        operationId: 'getHealth',
        summary: 'Whether requests can be served',
        response: {
          ...refusals(),
          200: { ...HealthRecord, description: 'ok or degraded.', examples: [example] },
          503: {
            ...HealthRecord,
            description:
              'unhealthy: the database or the queue store cannot be reached, or the database takes no writes.',
            examples: [{ ...example, status: 'unhealthy' }],
          },
        },
      },
    },
    async (_request, reply) => {
      const status = health.status();
      return reply
        .status(status === 'unhealthy' ? 503 : 200)
        .header('cache-control', 'no-store')
        .send({ status, version, uptime: health.uptimeSeconds() });
    },
  );
}
