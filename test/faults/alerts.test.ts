/**
 * The alerts of deploy/prometheus/ with a real Prometheus on a cluster of real processes: quiet while all is
 * well, firing when something is not, quiet again afterwards. Only the waits are shorter than an
 * operator's. What each alert computes has its cases in deploy/prometheus/alerts.test.yml.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import { canRunClusters, noneYet } from '../support/cluster-load.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { acting, beginning, gate, play } from '../support/staged.ts';
import { freePort } from '../support/supervised.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const canRun = [await canRunClusters(), await isInstalled('Prometheus')].every(Boolean);
const roles = ['api', 'worker', 'scheduler'] as const;
/** For what is true of the processes to have reached Prometheus, and its alerts to have followed. */
const deadlineMs = 60_000;

/** Waits of seconds instead of minutes, and a memory of half a minute for what has happened. */
function impatient(rules: string): string {
  return rules
    .replaceAll(/for: \d+[smh]$/gm, 'for: 1s')
    .replaceAll('[10m]', '[30s]')
    .replaceAll('} > 60', '} > 3')
    .replaceAll(') > 60', ') > 3');
}

describe.skipIf(!canRun)('Prometheus on a cluster', () => {
  let cluster: Cluster;
  let prometheus: Prometheus;
  let tenant: Tenant;
  const of = (role: (typeof roles)[number]) => cluster.of(role)[0] as ClusterProcess;
  const address = (role: (typeof roles)[number]) => new URL(of(role).url).host;

  beforeAll(async () => {
    cluster = await startCluster({
      ...noneYet,
      environment: { JOB_LEASE_MS: '2000', RETRY_BACKOFF_MS: '10' },
    });
    // Where Prometheus finds them again after a restart.
    for (const role of roles) {
      await cluster.add(role, { environment: { PORT: String(await freePort()) } });
    }
    tenant = await newTenant(of('api').client);
    prometheus = await startPrometheus({ targets: roles.map(address), rules: impatient });
  });
  afterAll(async () => {
    await prometheus?.close();
    await cluster?.close();
  });

  /** Alerts that fire, a line each, with the labels that tell one from another. */
  async function firing(): Promise<string[]> {
    const alerts = (await prometheus.alerts()).filter(({ state }) => state === 'firing');
    return alerts
      .map(({ name, labels }) => [name, labels['role'] ?? labels['queue'] ?? labels['instance']])
      .map((words) => words.filter((word) => word !== undefined).join(' '))
      .sort();
  }

  async function untilFiring(...alerts: string[]): Promise<void> {
    let found: string[] = [];
    await waitFor(
      async () => {
        found = await firing();
        return alerts.every((alert) => found.includes(alert));
      },
      {
        describe: () => `these fire: ${alerts.join(', ')}; there were: ${found.join(', ')}`,
        deadlineMs,
        everyMs: 200,
      },
    );
  }

  async function untilQuiet(): Promise<void> {
    let found: string[] = [];
    await waitFor(
      async () => {
        found = (await prometheus.alerts()).map(({ name, state }) => `${name} (${state})`);
        return found.length === 0;
      },
      {
        describe: () => `no alert is left; there were: ${found.join(', ')}`,
        deadlineMs,
        everyMs: 200,
      },
    );
  }

  test('reaches every process, and each says what it is', async () => {
    await waitFor(async () => (await prometheus.targets()).every(({ isUp }) => isUp), {
      describe: 'all targets are up',
      deadlineMs,
    });
    const told = await waitFor(
      async () => {
        const series = await prometheus.query('service_process_info');
        return series.length === roles.length && series;
      },
      { describe: 'each process tells of itself', deadlineMs },
    );

    expect(told.map(({ labels }) => `${labels['roles']} ${labels['instance']}`).sort()).toEqual(
      roles.map((role) => `${role} ${address(role)}`).sort(),
    );
    expect(told.every(({ value }) => value === 1)).toBe(true);
  });

  test('learns from any of them how many there are of each role', async () => {
    const expected = roles.flatMap((role) => roles.map((at) => `${role} 1 ${address(at)}`)).sort();
    let told: string[] = [];

    await waitFor(
      async () => {
        const series = await prometheus.query('service_live_processes');
        told = series.map(
          ({ labels, value }) => `${labels['role']} ${value} ${labels['instance']}`,
        );
        return JSON.stringify(told.sort()) === JSON.stringify(expected);
      },
      { describe: () => `one of each role; told was: ${told.join(', ')}`, deadlineMs },
    );
  });

  test('has something to show in every panel of the dashboard that work leaves a trace in', async () => {
    const { panels } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../deploy/grafana/skillwright.json'), 'utf8'),
    ) as { panels: { title: string; targets?: { expr: string }[] }[] };
    const queries = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '20s') })),
    );
    const empty = async () => {
      const titles = new Set<string>();
      for (const { title, expr } of queries) {
        if ((await prometheus.query(expr)).length === 0) titles.add(title);
      }
      return [...titles];
    };
    let left: string[] = [];

    await tenant.run(play, acting({ fail: { message: 'no', retryable: false } }));
    await waitFor(
      async () => {
        await tenant.run(play, acting({}));
        left = await empty();
        return left.length === 1;
      },
      { describe: () => `only one panel is empty; there were: ${left.join(', ')}`, deadlineMs },
    );

    // Nothing has gone wrong, and no run has called a model.
    expect(left).toEqual(['Answers of 500 and above']);
  });

  test('raises no alert while all is well', async () => {
    await untilQuiet();
    const evaluations = new Set<string>();
    const seen = new Set<string>();

    await waitFor(
      async () => {
        for (const { name } of await prometheus.alerts()) seen.add(name);
        return evaluations.add(await prometheus.evaluatedAt()).size > 10;
      },
      { describe: 'the rules have been evaluated ten times', deadlineMs, everyMs: 100 },
    );

    expect([...seen]).toEqual([]);
  });

  test('tells of a worker that was killed, of its run, and of the work that waits', async () => {
    const [begun, end] = [beginning(), gate()];
    const lost = await tenant.start(play, acting(begun.step, { until: end.path }));
    await begun.shown();

    await of('worker').kill();
    const waiting = await tenant.start(play, acting({}));

    await untilFiring(
      `SkillwrightTargetDown ${address('worker')}`,
      'SkillwrightLeasesExpire',
      'SkillwrightJobsStuck skill-execution',
      'SkillwrightJobsWait skill-execution',
      'SkillwrightRoleMissing worker',
    );
    const others = (await firing()).filter((alert) =>
      /Redis|Database|RoleMissing (api|sch)/.test(alert),
    );
    expect(others).toEqual([]);

    end.open();
    await of('worker').start();
    await tenant.jobIn(waiting, 'completed');
    await tenant.jobIn(lost, 'completed');
    await untilQuiet();
  });

  test('tells of each process that Redis is gone, until it is back', async () => {
    await cluster.redis.kill();

    await untilFiring(...roles.map((role) => `SkillwrightRedisDown ${address(role)}`));

    await cluster.redis.start();
    await untilQuiet();
  });

  test('tells of each process that PostgreSQL is gone, until it is back', async () => {
    await cluster.postgres.stop('immediate');

    await untilFiring(...roles.map((role) => `SkillwrightDatabaseDown ${address(role)}`));

    await cluster.postgres.start();
    await untilQuiet();
  });

  test('reports that no process answers when all have ended', async () => {
    for (const role of roles) await of(role).stop();

    await untilFiring('SkillwrightDown');
  });
});
