/**
 * Checks that package-lock.json installs on every platform that the project supports: `npm ci` refuses
 * a lock file in which an optional package of some platform is missing, and on that platform alone the
 * install then lacks a binary. Also refuses recorded download addresses, which would tie an install to
 * one registry. `npm ci --dry-run` writes nothing and reads only the lock file.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const systems = ['linux', 'darwin', 'win32'];
const processors = ['x64', 'arm64'];
const timeoutMs = 120_000;

const faults = [...recordedAddresses(), ...refusals()];
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

function recordedAddresses(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Record<string, { readonly resolved?: string }>;
  };
  return Object.entries(lock.packages)
    .filter(([, entry]) => entry.resolved?.includes('://'))
    .map(([name]) => `${name}: remove its "resolved" address from package-lock.json`);
}

function refusals(): string[] {
  return systems.flatMap((os) =>
    processors.flatMap((cpu) => {
      const args = ['ci', '--dry-run', `--os=${os}`, `--cpu=${cpu}`];
      const run = spawnSync('npm', args, { cwd: root, encoding: 'utf8', timeout: timeoutMs });
      return run.status === 0
        ? []
        : [`npm ${args.join(' ')} failed:\n${run.stderr || (run.error?.message ?? '')}`];
    }),
  );
}
