/**
 * The stage for tests that need a run to do something at a certain moment: skills that act what
 * their input says, and gates that hold a run until the test opens them.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Step } from '../fixtures/skills/staged/play.ts';
import { type Platform, type PlatformOptions, startPlatform } from './platform.ts';
import { waitFor } from './wait-for.ts';

const root = join(import.meta.dirname, '../..');

/** `util` of the catalog, and the staged skills. */
export const stagedSkills: readonly string[] = [
  join(root, 'src/core/skills/catalog/util'),
  join(root, 'test/fixtures/skills/staged'),
];

/** A platform with the staged skills. */
export function startStaged(options: PlatformOptions = {}): Promise<Platform> {
  return startPlatform({ skillsDirs: stagedSkills, ...options });
}

export const play = 'staged/v1.0/play';

/** Input of `play`: the steps of its one attempt, or of each. */
export function acting(...steps: Step[]): { attempts: Step[][] } {
  return { attempts: [steps] };
}

/** Stays until the process ends, so that no run misses that its gate has opened. */
const gates = mkdtempSync(join(tmpdir(), 'skillwright-gates-'));
let made = 0;
process.once('exit', () => rmSync(gates, { recursive: true, force: true }));

/** A gate, closed; it opens at the end of the test at the latest, so that no run waits for ever. */
export function gate(): { path: string; open(): void } {
  made += 1;
  const path = join(gates, String(made));
  const open = () => writeFileSync(path, '');
  onTestFinished(open);
  return { path, open };
}

/**
 * A step that shows that the code of a run has begun. A job is active as soon as it is claimed, and an attempt whose
 * code has not begun is not charged: a test that kills a run waits for this first.
 */
export function beginning(): { step: Step; shown(): Promise<unknown> } {
  made += 1;
  const path = join(gates, `begun-${made}`);
  const shown = () =>
    waitFor(() => existsSync(path), { describe: 'the code of the run has begun' });
  return { step: { touch: path }, shown };
}

/** A file for the lines of runs. It stays as long: a run that was given up may still write to it. */
export function linesFile(): string {
  made += 1;
  return join(gates, `lines-${made}`);
}

/** A directory for the data of platforms that are started one after the other; gone with the test. */
export function dataDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-data-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
