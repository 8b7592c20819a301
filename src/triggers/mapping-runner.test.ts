import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { childProcesses } from '../../test/fixtures/skills/driver.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { type MappingRunner, startMappingRunner } from './mapping-runner.ts';

const endless = { expression: `$match("${'a'.repeat(60)}!", /^(a+)+$/)`, context: '{}' };

test('a process whose platform is killed ends, even while an expression blocks it', async () => {
  const program = `
    const { startMappingRunner } = await import(${JSON.stringify(new URL('mapping-runner.ts', import.meta.url))});
    const runner = await startMappingRunner();
    console.log('asked');
    await runner.ask(${JSON.stringify(endless)}, 60_000);
  `;
  const platform = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let said = '';
  platform.stdout.on('data', (bytes: Buffer) => {
    said += bytes.toString();
  });
  await waitFor(() => said.includes('asked'), { describe: 'the expression runs' });
  const children = [...childProcesses(platform.pid)];
  const evaluating = children.find(([, line]) => line.includes('mapping-process'))?.[0] as number;
  expect(evaluating).toBeGreaterThan(0);

  platform.kill('SIGKILL');

  await waitFor(() => !isThere(evaluating), { describe: 'the process is gone' });
});

test('a process that is stopped takes its guard with it', async () => {
  const guards = () =>
    [...childProcesses().values()].filter((line) => line.includes('mapping-orphan-guard')).length;
  const before = guards();
  const runners: MappingRunner[] = await Promise.all([startMappingRunner(), startMappingRunner()]);
  expect(guards()).toBe(before + 2);

  await Promise.all(runners.map((runner) => runner.stop()));

  await waitFor(() => guards() === before, { describe: 'the guards are gone' });
});

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
