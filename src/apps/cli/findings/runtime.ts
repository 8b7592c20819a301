/** The Node that runs the platform, and the clock of the machine. */
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { type Finding, fault, ok } from './finding.ts';

/** What a check may know of its machine. */
export class Runtime {
  /** Without the v. */
  readonly node: string = process.versions.node;
  /** The directory of temporary files. */
  readonly temporary: string = tmpdir();

  /** Free bytes, and all bytes, of the disk of a path. */
  diskOf(path: string): { readonly free: number; readonly total: number } {
    const { bavail, blocks, bsize } = statfsSync(path);
    return { free: bavail * bsize, total: blocks * bsize };
  }
}

const oldestNode = 26;
/** No platform of this version ran before. */
const earliest = Date.UTC(2026, 0, 1);

export function checkRuntime({ node }: Runtime, now: number): Finding[] {
  const findings: Finding[] = [];
  if (Number(node.split('.')[0]) < oldestNode) {
    const remedy = 'install Skillwright with its own Node: npm install without --omit=optional';
    findings.push(fault('runtime', `Node ${node} is older than ${oldestNode}`, remedy));
  } else findings.push(ok('runtime', `Node ${node}`));
  if (now < earliest) {
    const message = `The clock of this machine says ${new Date(now).toISOString()}`;
    findings.push(fault('clock', message, 'set it; schedules, leases and expiries follow it'));
  }
  return findings;
}
