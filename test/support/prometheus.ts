/**
 * A private Prometheus from the machine's own program, on a free port and with its data in a temporary
 * directory. It runs deploy/prometheus/ as operators get it, but for targets of the test's own and
 * intervals short enough for a test. It ends with the process that started it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { freePort, logTail, serverDirectory, supervise } from './supervised.ts';
import { waitFor } from './wait-for.ts';

export const prometheusFolder = join(import.meta.dirname, '../../deploy/prometheus');
const startDeadlineMs = 20_000;
const requestDeadlineMs = 5_000;

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Target {
  readonly address: string;
  readonly isUp: boolean;
}

interface Alert {
  readonly name: string;
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** What an expression is now; throws where it cannot be read. */
  query(expression: string): Promise<Series[]>;
  targets(): Promise<Target[]>;
  /** Those that are pending or firing. */
  alerts(): Promise<Alert[]>;
  /** When the first group of rules was last evaluated; the others are as often. */
  evaluatedAt(): Promise<string>;
  close(): Promise<void>;
}

/** The program, or undefined where it or promtool is not installed. */
export function findPrometheus(): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(':').concat('/usr/bin', '/usr/local/bin');
  const [prometheus, promtool] = ['prometheus', 'promtool'].map((name) =>
    directories.map((directory) => join(directory, name)).find(existsSync),
  );
  return promtool === undefined ? undefined : prometheus;
}

/** Runs promtool in deploy/prometheus/: its exit code and all that it said. */
export function promtool(...args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, {
    cwd: prometheusFolder,
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { status, output: `${stdout}${stderr}` };
}

/**
 * Starts it on `targets`, addresses such as `127.0.0.1:3000`. `rules` changes the text of the alert rules,
 * to wait for less long than an operator would.
 */
export async function startPrometheus(options: {
  targets: readonly string[];
  rules(text: string): string;
}): Promise<Prometheus> {
  const program = findPrometheus();
  if (program === undefined) throw new Error('Prometheus is not installed.');
  const directory = serverDirectory('prometheus', null);
  const port = await freePort();
  writeFileSync(join(directory, 'prometheus.yml'), configFor(options.targets));
  const rules = readFileSync(join(prometheusFolder, 'alerts.yml'), 'utf8');
  writeFileSync(join(directory, 'alerts.yml'), options.rules(rules));
  const server = await supervise(directory, null, 'KILL', [
    program,
    `--config.file=${join(directory, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
  ]);
  const origin = `http://127.0.0.1:${port}`;
  await waitFor(
    async () => {
      if (server.hasExited()) return { isReady: false };
      const { ok } = await fetch(`${origin}/-/ready`);
      return ok ? { isReady: true } : null;
    },
    {
      describe: () => `Prometheus is ready. Its log:\n${logTail(directory)}`,
      deadlineMs: startDeadlineMs,
      everyMs: 50,
    },
  ).then(({ isReady }) => {
    if (!isReady) throw new Error(`Prometheus has ended:\n${logTail(directory)}`);
  });

  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  async function ask(path: string): Promise<any> {
    const response = await fetch(`${origin}/api/v1/${path}`, {
      signal: AbortSignal.timeout(requestDeadlineMs),
    });
    const { status, data, error } = (await response.json()) as Record<string, unknown>;
    if (status !== 'success') throw new Error(`${path}: ${error}`);
    return data;
  }

  return {
    async query(expression) {
      const { result } = await ask(`query?query=${encodeURIComponent(expression)}`);
      return result.map((one: { metric: Series['labels']; value: [number, string] }) => ({
        labels: one.metric,
        value: Number(one.value[1]),
      }));
    },
    async targets() {
      const { activeTargets } = await ask('targets?state=active');
      return activeTargets.map((one: { labels: { instance: string }; health: string }) => ({
        address: one.labels.instance,
        isUp: one.health === 'up',
      }));
    },
    async alerts() {
      const { alerts } = await ask('alerts');
      return alerts.map((one: Omit<Alert, 'name'>) => ({ ...one, name: one.labels['alertname'] }));
    },
    async evaluatedAt() {
      const { groups } = await ask('rules');
      return groups[0].lastEvaluation;
    },
    close: () => server.end(),
  };
}

/** The configuration that operators get, with targets and intervals of a test. */
function configFor(targets: readonly string[]): string {
  const config = parse(readFileSync(join(prometheusFolder, 'prometheus.yml'), 'utf8'));
  const [job, ...others] = config.scrape_configs;
  if (job?.job_name !== 'skillwright' || others.length > 0) {
    throw new Error('prometheus.yml has another job than skillwright');
  }
  job.static_configs = [{ targets }];
  Object.assign(config.global, {
    scrape_interval: '1s',
    scrape_timeout: '1s',
    evaluation_interval: '500ms',
  });
  return stringify(config);
}
