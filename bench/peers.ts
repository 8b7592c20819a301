/**
 * `node bench/peers.ts [--seconds n] [--only name,name]`: measures peers with the load of `npm run bench`, beside the bare
 * ceiling of the same run. Installs each from the npm registry into a temporary directory, which it removes. The
 * programs under measurement are in `peers/`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/support/postgres.ts';
import { freePort } from '../test/support/supervised.ts';
import { waitFor } from '../test/support/wait-for.ts';
import { round } from './figures.ts';
import { flood } from './load.ts';
import { cpuMs, withServer } from './server.ts';
import { drained, echo, measureTurn } from './throughput.ts';

const warmUpSeconds = 3;
const installed = {
  mastra: ['@mastra/core@1.71.0', '@mastra/libsql@1.23.1', 'zod@4'],
  'graphile-worker': ['graphile-worker@0.18.0'],
};
type Peer = keyof typeof installed;

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    only: { type: 'string', default: Object.keys(installed).join(',') },
  },
});
const seconds = Number(options.seconds);

await withServer('ceiling', (server) => {
  const { pid } = server;
  const cpu = () => ({ server: cpuMs(pid) });
  return measureTurn('ceiling', { ...server, cpuMs: cpu, residentMiB: () => 0 }, seconds);
});
for (const name of options.only.split(',')) await measurePeer(name as Peer);

async function measurePeer(name: Peer): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), `skillwright-peer-`));
  const postgres = name === 'graphile-worker' ? await startPostgres({ durable: true }) : null;
  try {
    await finished('npm', ['install', '--no-audit', '--no-fund', ...installed[name]], directory);
    copyFileSync(join(import.meta.dirname, 'peers', `${name}.mjs`), join(directory, 'peer.mjs'));
    const port = await freePort();
    const child = spawn(process.execPath, ['peer.mjs'], {
      cwd: directory,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        PORT: String(port),
        DATA_DIR: directory,
        DATABASE_URL: await postgres?.createDatabase(),
      },
    });
    try {
      await load(name, `http://127.0.0.1:${port}`);
    } finally {
      child.kill('SIGKILL');
    }
  } finally {
    await postgres?.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function load(name: Peer, url: string): Promise<void> {
  const completed = async () => Number(await (await fetch(url)).text());
  await waitFor(() => completed().then(Number.isInteger), { describe: `${name} answers` });
  const target = echo({ url, headers: { 'content-type': 'application/json' } });
  const warmUp = await flood(target, warmUpSeconds);
  const before = await drained({ completed }, warmUp.accepted);
  const begun = performance.now();
  const { accepted, refused } = await flood(target, seconds);
  const jobs = (await drained({ completed }, before + accepted)) - before;
  const perSecond = jobs / ((performance.now() - begun) / 1000);
  console.log(
    `${name.padEnd(16)} ${round(perSecond)} jobs/s (${accepted} accepted, ${refused} refused)`,
  );
}

async function finished(command: string, words: readonly string[], cwd: string): Promise<void> {
  const child = spawn(command, words, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${command} ${words.join(' ')} ended with ${code}.`);
}
