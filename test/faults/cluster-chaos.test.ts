/**
 * Everything at once: processes killed, frozen and replaced, stores crashed, emptied, filled and locked,
 * the network disordered and a clock wrong, under constant load. Then it is counted: accepted = recorded,
 * each once; each completed job told once; one run for each minute.
 *
 * It is part of `npm run soak`. CHAOS_SECONDS is how long it lasts; with CHAOS_REPORT, a path, the report is written there as well.
 */
import { writeFileSync } from 'node:fs';
import { describe, expect, onTestFailed, onTestFinished, test } from 'vitest';
import { deliveriesAmiss, minutesAmiss, readJobs } from '../support/accounts.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { canRunClusters, loadCluster, stagedSkillsDir } from '../support/cluster-load.ts';
import { longestPauseMs, outcomesOf } from '../support/load.ts';
import { networkMonkey, processMonkey, storeMonkey } from '../support/monkeys.ts';
import { faultJournal, reportOf } from '../support/report.ts';
import { findFaketime, skewedClock } from '../support/skewed-clock.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';
import { accountOf } from '../support/supervised.ts';
import { receiverAuthorityFile, startTlsReceiver } from '../support/tls-receiver.ts';

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 60);
const perSecond = 20;
/** For what is left to be done when the faults are over: leases, retries and their backoff. */
const restMs = 120_000;

const canRun = await canRunClusters();
const mounts = canRun && canMount();

describe.skipIf(!canRun)('a cluster to which everything happens', () => {
  test(`for ${seconds} s records what it accepts, each once`, {
    timeout: seconds * 1_000 + 300_000,
  }, async () => {
    const disk = mounts ? mountSmallDisk(1_024, accountOf('postgres', 'nobody')) : null;
    if (disk !== null) onTestFinished(() => disk.close());
    const receiver = await startTlsReceiver();
    onTestFinished(() => receiver.close());
    const cluster = await startCluster({
      api: 2,
      workers: 3,
      schedulers: 2,
      proxied: true,
      skillsDir: stagedSkillsDir,
      ...(disk === null ? {} : { tablespace: disk.path }),
      environment: {
        JOB_LEASE_MS: '5000',
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
        WEBHOOK_RETRY_DELAYS: '1,1,1,1,1',
        NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
      },
    });
    onTestFinished(() => cluster.close());
    // The fourth.
    await addSkewedWorker(cluster);
    const load = await loadCluster(cluster, {
      perSecond,
      requestTimeoutMs: 5_000,
      input: (n) => {
        if (n % 20 === 11) return { waitMs: 3_000 };
        if (n % 10 === 3) return { waitMs: 500 };
        if (n % 10 === 7) return { failures: 1 };
        return { waitMs: 20 };
      },
    });
    const { tenant } = load;
    await watch(tenant, receiver.origin);

    const journal = faultJournal();
    onTestFailed(() => console.log(`\n${journal.timeline()}\n`));
    const crashed: string[] = [];
    const over = performance.now() + seconds * 1_000;
    const isOver = () => performance.now() >= over;
    await Promise.all([
      processMonkey(cluster, journal, crashed).run(isOver),
      storeMonkey(cluster, journal, disk).run(isOver),
      networkMonkey(cluster, journal).run(isOver),
    ]);

    const account = await load.settle(restMs);
    const jobs = await readJobs(cluster.sql, tenant.organization);
    const completed = jobs.filter(({ status }) => status === 'completed').map(({ id }) => id);
    const told = receiver.requests.filter(({ json }) => json.event === 'skill.completed');
    const report = reportOf({
      seconds,
      journal,
      account,
      more: {
        'longest time in which nothing was accepted': `${(longestPauseMs(load.attempts) / 1000).toFixed(1)} s`,
        'runs of schedules': jobs.filter(({ trigger_type }) => trigger_type === 'scheduled').length,
        'completed jobs told by webhook': new Set(told.map(({ json }) => json.id)).size,
        'deliveries, repeated ones included': told.length,
        'requests by outcome': outcomesOf(load.attempts),
        'processes that ended by themselves': crashed.length,
      },
    });
    console.log(`\n${report}\n`);
    if (process.env['CHAOS_REPORT']) writeFileSync(process.env['CHAOS_REPORT'], `${report}\n`);

    expect(crashed).toEqual([]);
    expect(journal.counts().size).toBeGreaterThan(10);
    expect(deliveriesAmiss(receiver.requests, completed)).toEqual([]);
    expect(await minutesAmiss(cluster.sql)).toEqual([]);
  });
});

async function addSkewedWorker(cluster: Cluster): Promise<void> {
  const library = findFaketime();
  await cluster.add(
    'worker',
    library === undefined ? {} : { environment: skewedClock(library, 90) },
  );
}

/** Schedules that run each minute, and a webhook that is told of what completes. */
async function watch(
  tenant: Awaited<ReturnType<typeof loadCluster>>['tenant'],
  origin: string,
): Promise<void> {
  const webhook = {
    agent_id: 'default',
    url: `${origin}/hook`,
    events: ['skill.completed', 'skill.failed'],
  };
  const schedules = Array.from({ length: 5 }, (_, i) => ({
    agent_id: 'default',
    skill_category: 'util',
    skill_name: 'echo',
    // Different texts that mean the same.
    cron_expression: `*${',*'.repeat(i)} * * * *`,
    input: { text: `schedule ${i}` },
  }));
  const asked: [string, unknown][] = [
    ['/api/agent-webhooks', webhook],
    ...schedules.map((schedule): [string, unknown] => ['/api/scheduled-jobs', schedule]),
  ];
  for (const [path, body] of asked) {
    const { status, text } = await tenant.post(path, body);
    expect(status, text).toBe(201);
  }
}
