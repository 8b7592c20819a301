import { spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
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

test('an answer that came in time is taken, however late the platform comes to it', async () => {
  const runner = await startMappingRunner();
  onTestFinished(() => runner.stop());
  const answer = runner.ask({ expression: '1', context: '{}' }, 300);

  // The platform does nothing else for longer than the deadline.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);

  expect(await answer).toEqual({ value: '1' });
});

test('no answer is late, or held up when the platform comes to the deadline late itself', async () => {
  const [one, other] = await Promise.all([startMappingRunner(), startMappingRunner()]);
  onTestFinished(async () => void (await Promise.all([one.stop(), other.stop()])));

  expect(await one.ask(endless, 300)).toBe('late');
  const answer = other.ask(endless, 300);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);

  expect(await answer).toBe('held up');
});

test('a process that is stopped takes its guard with it', async () => {
  const guards = () =>
    [...childProcesses()].flatMap(([pid, line]) =>
      line.includes('mapping-orphan-guard') ? [pid] : [],
    );
  const others = new Set(guards());
  const runners: MappingRunner[] = await Promise.all([startMappingRunner(), startMappingRunner()]);
  const own = guards().filter((pid) => !others.has(pid));
  expect(own).toHaveLength(2);

  await Promise.all(runners.map((runner) => runner.stop()));

  await waitFor(() => !guards().some((pid) => own.includes(pid)), {
    describe: 'the guards are gone',
  });
});

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
