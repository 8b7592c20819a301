/**
 * The units of deploy/systemd under a systemd of its own: a container of systemd-nspawn, whose system is this machine's
 * through an overlay that is lost at its end. It has no network but its own loopback.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { waitFor } from './wait-for.ts';

export interface Machine {
  /** Runs a line of a shell in it as root, and returns what it prints. Throws where it fails. */
  run(line: string): Promise<string>;
  stop(): Promise<void>;
}

const units = join(import.meta.dirname, '../../deploy/systemd');
const deadlineMs = 60_000;

/** As the header of the service says, but for the links that `systemctl enable` makes. */
const setUp = `
  set -e
  base=$1 file=$2 units=$3
  mount -t tmpfs -o mode=755 tmpfs "$base"
  mkdir "$base/changes" "$base/work" "$base/root"
  mount -t overlay -o "lowerdir=/,upperdir=$base/changes,workdir=$base/work" overlay "$base/root"
  root=$base/root system=$base/root/etc/systemd/system
  rm -rf "$system"; mkdir -p "$system/multi-user.target.wants" "$system/sockets.target.wants"
  install -m 755 "$file" "$root/usr/local/bin/skillwright"
  install -m 644 -D "$units/skillwright.sysusers.conf" "$root/usr/lib/sysusers.d/skillwright.conf"
  systemd-sysusers --root="$root"
  install -m 640 -D "$units/skillwright.env" "$root/etc/skillwright/skillwright.env"
  chroot "$root" chgrp skillwright /etc/skillwright/skillwright.env
  install -m 644 "$units/skillwright.service" "$units/skillwright.socket" "$system"
  ln -s ../skillwright.service "$system/multi-user.target.wants/"
  ln -s ../skillwright.socket "$system/sockets.target.wants/"
  exec systemd-nspawn --quiet --register=no --keep-unit --link-journal=no --boot --private-network \\
    --console=pipe --directory="$root" -- --unit=multi-user.target
`;

/** Whether this process may boot one. */
export function canBoot(): boolean {
  const found = spawnSync('systemd-nspawn', ['--version'], { stdio: 'ignore' });
  return found.status === 0 && process.getuid?.() === 0;
}

/** Boots a machine in which a single executable is installed as the header of the service says. */
export async function bootUnits(file: string): Promise<Machine> {
  const place = mkdtempSync(join(tmpdir(), 'skillwright-machine-'));
  const args = ['--mount', '--kill-child', 'sh', '-c', setUp, 'sh', place, file, units];
  const container = spawn('unshare', ['--fork', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [container.stdout, container.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const describe = () => `systemd has booted; it printed: ${printed}`;
  const leader = await waitFor(() => systemdBelow(container), { describe, deadlineMs });
  const run = async (line: string) => {
    const inside = ['--target', String(leader), '--all', 'bash', '-euo', 'pipefail', '-c', line];
    const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
    return (await promisify(execFile)('nsenter', inside, { timeout: deadlineMs, env })).stdout;
  };
  return {
    run,
    async stop() {
      process.kill(leader, 'SIGKILL');
      container.kill('SIGKILL');
      if (container.exitCode === null && container.signalCode === null)
        await once(container, 'close');
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** The first process of the machine, seen from outside; null while there is none. */
function systemdBelow({ pid }: ChildProcess): number | null {
  let parents = [pid];
  while (parents.length > 0) {
    const children = parents.flatMap((parent) => childrenOf(parent));
    const found = children.find((child) => nameOf(child) === 'systemd');
    if (found !== undefined) return found;
    parents = children;
  }
  return null;
}

function childrenOf(pid: number | undefined): number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  try {
    return readFileSync(file, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
