/** The units of deploy/systemd, as systemd reads them, and the program's times and variables. test/faults/executable.test.ts starts them. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { variables } from '../src/core/config/variables.ts';
import {
  graceMs,
  hasProgram,
  readFile,
  root,
  stopMarginMs,
  unknownIn,
} from '../test/support/deploy.ts';

const service = readFile('deploy/systemd/skillwright.service');
const settings = readFile('deploy/systemd/skillwright.env');
/** Of systemd's scale: what it can do to the machine; below 2 is what it calls OK. */
const exposureMax = 2;

/** The value of a setting of the service. */
function settingOf(name: string): string | undefined {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(service)?.[1];
}

/** The units in a folder, where a program that is there stands for the platform. */
function units(change = (text: string) => text): string {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-units-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(root, 'deploy/systemd'), folder, { recursive: true });
  const text = service.replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true');
  writeFileSync(join(folder, 'skillwright.service'), change(text));
  return folder;
}

function analyze(cwd: string, ...args: string[]): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { cwd, encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

test.skipIf(!hasProgram('systemd-analyze'))('systemd finds no fault in the units', () => {
  const verify = ['verify', '--man=no', './skillwright.service', './skillwright.socket'];

  expect(analyze(units(), ...verify)).toEqual({ status: 0, said: '' });
  const misspelt = units((text) => text.replace('KillMode=', 'KilMode='));
  expect(analyze(misspelt, ...verify).said).toContain('KilMode');
});

test.skipIf(!hasProgram('systemd-analyze'))('the service may do little to its machine', () => {
  const judge = ['security', '--offline=yes', '--no-pager', `--threshold=${exposureMax * 10}`];

  expect(analyze(units(), ...judge, './skillwright.service')).toMatchObject({ status: 0 });
  const open = units((text) => text.replace(/^(?:Protect|Private|Restrict).*\n/gm, ''));
  expect(analyze(open, ...judge, './skillwright.service').status).not.toBe(0);
});

test('stops the platform alone, and not before its runs have had their time', () => {
  expect(settingOf('KillMode')).toBe('mixed');
  expect(Number(settingOf('TimeoutStopSec')) * 1000).toBeGreaterThan(graceMs + stopMarginMs);
});

test('gives the platform folders of its own, and no variable that the program does not know', () => {
  const given = Object.fromEntries(
    [...settings.matchAll(/^#?([A-Z_]+)=(.*)$/gm)].map(([, name = '', value]) => [name, value]),
  );

  expect(given['DATA_DIR']).toBe(`/var/lib/${settingOf('StateDirectory')}`);
  expect(given['XDG_CACHE_HOME']).toBe('/var/cache');
  expect(settingOf('CacheDirectory')).toBe('skillwright');
  expect(unknownIn(Object.keys(given))).toEqual(['XDG_CACHE_HOME']);
  const { default: port } = variables.port;
  expect(readFile('deploy/systemd/skillwright.socket')).toContain(`ListenStream=127.0.0.1:${port}`);
});

test('runs as a user that there is', () => {
  const [, user, home] = /^u (\S+) - "[^"]*" (\S+)/.exec(
    readFile('deploy/systemd/skillwright.sysusers.conf'),
  ) as RegExpExecArray;

  expect([user, user, home]).toEqual([
    settingOf('User'),
    settingOf('Group'),
    '/var/lib/skillwright',
  ]);
});
