import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import { SkillLoadError } from '../../core/skills/sources/load-error.ts';
import type { LoadPlan } from '../../core/skills/sources/load-plan.ts';
import { AuthoredSkills } from './authored-skills.ts';
import { PreparedLoads } from './prepared-loads.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'skillwright-authored-'));
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(dir, { recursive: true });
});

/** Loads that end only when they are given up, each with the next of `faults`, until `ends` is true. */
function scripted(...faults: Error[]) {
  const plans: LoadPlan[] = [];
  const load = { plans, ends: false };
  const start = (planned: Promise<LoadPlan>, giveUp: AbortSignal) => {
    const pool = Promise.withResolvers<ExecutorPool>();
    giveUp.addEventListener('abort', () => pool.reject(faults.shift()));
    void planned.then((plan) => {
      plans.push(plan);
      if (load.ends) pool.resolve({ definitions: [], leftOut: [] } as unknown as ExecutorPool);
    });
    return pool.promise;
  };
  return { load, authored: new AuthoredSkills(new PreparedLoads(start)) };
}

test('a load that had only begun at a save is given up too, if it does not end', async () => {
  const file = join(dir, 'endless.ts');
  writeFileSync(file, 'for (;;);');
  const { load, authored } = scripted(new SkillLoadError(file, 'ended'));
  const loaded = authored.load();
  vi.advanceTimersByTime(100);

  expect(authored.noteSaved([file])).toBe(false);
  load.ends = true;
  vi.advanceTimersByTime(2_000);

  const { leftOut } = await loaded;
  expect(load.plans.map(({ avoided }) => avoided)).toEqual([[], [file]]);
  expect(leftOut).toEqual([{ file, reason: 'is still being imported', isFailing: false }]);
  expect(authored.hasDeferred()).toBe(true);
});

test('a load that is given up before it began with a file is repeated', async () => {
  const { load, authored } = scripted(new Error('an executor could not start: stopped'));
  const loaded = authored.load();
  vi.advanceTimersByTime(400);
  load.ends = true;

  expect(authored.noteSaved([join(dir, 'saved.ts')])).toBe(true);

  expect((await loaded).leftOut).toEqual([]);
  expect(load.plans).toHaveLength(2);
});

test('a repeated load that does not end is given up without another save', async () => {
  const file = join(dir, 'endless.ts');
  writeFileSync(file, 'for (;;);');
  const unbegun = new Error('an executor could not start: stopped');
  const { load, authored } = scripted(unbegun, new SkillLoadError(file, 'ended'));
  const loaded = authored.load();
  vi.advanceTimersByTime(400);
  expect(authored.noteSaved([file])).toBe(true);
  await vi.waitFor(() => expect(load.plans).toHaveLength(2));

  load.ends = true;
  vi.advanceTimersByTime(4_000);

  expect((await loaded).leftOut).toMatchObject([{ file, reason: 'is still being imported' }]);
});
