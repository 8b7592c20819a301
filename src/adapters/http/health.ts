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

/** Runs the probes at once and then every second. Each failure and each recovery is logged once. */
export class Health {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #startedAt: number;
  readonly #failing = new Map<string, Probe>();
  readonly #underWay = new Set<Probe>();
  readonly #interval: NodeJS.Timeout;

  constructor(probes: readonly Probe[], clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
    this.#startedAt = clock.monotonic();
    const runAll = () => {
      for (const probe of probes) void this.#run(probe);
    };
    runAll();
    this.#interval = setInterval(runAll, everyMs).unref();
  }

  status(): HealthStatus {
    const failing = [...this.#failing.values()];
    if (failing.length === 0) return 'ok';
    return failing.some((probe) => probe.isCritical) ? 'unhealthy' : 'degraded';
  }

  uptimeSeconds(): number {
    return Math.floor((this.#clock.monotonic() - this.#startedAt) / 10) / 100;
  }

  stop(): void {
    clearInterval(this.#interval);
  }

  async #run(probe: Probe): Promise<void> {
    if (this.#underWay.has(probe)) return;
    this.#underWay.add(probe);
    const timer = setTimeout(() => this.#fail(probe, 'it does not answer'), deadlineMs);
    try {
      await probe.check();
      if (this.#failing.delete(probe.name)) {
        this.#log.info({ probe: probe.name }, 'a probe holds again');
      }
    } catch (error) {
      this.#fail(probe, (error as Error).message);
    } finally {
      clearTimeout(timer);
      this.#underWay.delete(probe);
    }
  }

  #fail(probe: Probe, reason: string): void {
    if (!this.#failing.has(probe.name)) {
      const means = probe.isCritical ? 'unhealthy' : 'degraded';
      this.#log.warn({ probe: probe.name, reason }, `a probe fails: /health is ${means}`);
    }
    this.#failing.set(probe.name, probe);
  }
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
