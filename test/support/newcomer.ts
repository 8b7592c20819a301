/** A newcomer in an empty folder: the first lines of the README, with a home and a cache of npm that are empty. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminSecret, clientOf } from './platform.ts';
import { freePort } from './supervised.ts';
import { newTenant } from './tenant.ts';
import { waitFor } from './wait-for.ts';

const deadlineMs = 120_000;
const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');

/** The lines of the first block of the README: to try, to install, to run own skills. */
export function firstLines(): string[] {
  const [, block = ''] = /^```sh\n(.*?)^```/ms.exec(readme) ?? [];
  return block.trim().split('\n');
}

export class Newcomer {
  /** The folder; `skills` of it has the skill that the README shows. */
  readonly place = mkdtempSync(join(tmpdir(), 'skillwright-newcomer-'));
  readonly #registry: string;
  #port = 0;

  constructor(registry: string) {
    this.#registry = registry;
    mkdirSync(join(this.place, 'home'));
    mkdirSync(join(this.place, 'skills'));
    const [, skill = ''] = /^```ts\n(.*?)^```/ms.exec(readme) ?? [];
    writeFileSync(join(this.place, 'skills/shout.ts'), skill);
  }

  /** Types a line of a shell. */
  type(line: string, variables: Readonly<Record<string, string>> = {}): ChildProcess {
    const programs = (process.env['PATH'] ?? '').split(':');
    const env = {
      PATH: programs.filter((one) => !one.includes('node_modules')).join(':'),
      HOME: join(this.place, 'home'),
      npm_config_cache: join(this.place, 'npm-cache'),
      npm_config_registry: this.#registry,
      npm_config_update_notifier: 'false',
      ADMIN_SECRET: adminSecret,
      PORT: String(this.#port),
    };
    return spawn('sh', ['-c', line], {
      cwd: this.place,
      env: { ...env, ...variables },
      detached: true,
      stdio: 'ignore',
    });
  }

  /** Types a line that starts the platform, and waits until it is ready. */
  async start(
    line: string,
    variables: Readonly<Record<string, string>> = {},
  ): Promise<ChildProcess> {
    this.#port = await freePort();
    const shell = this.type(line, variables);
    const isReady = async () => {
      if (shell.exitCode !== null) throw new Error(`${line} ended with code ${shell.exitCode}`);
      return (await fetch(`${this.url}/health`).catch(() => null))?.status === 200;
    };
    await waitFor(isReady, { describe: `${line} starts a platform`, deadlineMs });
    return shell;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Makes a key, and runs the skill of the README with it; the body of its job. */
  async shout(): Promise<unknown> {
    const tenant = await newTenant(clientOf(this.url));
    return (await tenant.run('text/v1.0/shout', { text: 'ready' })).body;
  }

  /** As Ctrl C does. */
  async interrupt(shell: ChildProcess): Promise<void> {
    process.kill(-(shell.pid ?? 0), 'SIGINT');
    if (shell.exitCode === null && shell.signalCode === null) await once(shell, 'close');
    // The shell may end before the platform does.
    const isGone = async () => (await fetch(this.url).catch(() => null)) === null;
    await waitFor(isGone, { describe: 'the platform has ended', deadlineMs });
  }

  leave(): void {
    rmSync(this.place, { recursive: true, force: true });
  }
}
