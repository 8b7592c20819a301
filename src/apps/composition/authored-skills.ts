/**
 * The skills of an author, who saves often and not always whole. Each load imports only what has changed since it
 * last loaded; a file that does not load costs no other, and keeps its last version that did. Promises that a file
 * that never ends its import holds up the others only until the next save; where that has ended a load before it began
 * with a file, for some seconds more.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, sep } from 'node:path';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import { isSkillMd } from '../../core/skills/sources/find-modules.ts';
import { type LeftOutSkill, SkillLoadError } from '../../core/skills/sources/load-error.ts';
import {
  type KeptSkill,
  type LoadedFile,
  type LoadPlan,
  stampOf,
} from '../../core/skills/sources/load-plan.ts';
import type { PreparedLoads } from './prepared-loads.ts';

/** Milliseconds for which a save lets a load go on that is under way. */
const patienceMs = 300;
/** Milliseconds for which a load goes on that had only begun at a save: several files are often saved together. */
const begunPatienceMs = 2_000;
/** Loads of which each ended its executor, until this is given up. */
const loadsMax = 50;
const modulePattern = /\.[cm]?[jt]s$/;

/** A file of skills, as it was when it was imported last. */
interface Entry {
  /** The last version that loaded. */
  readonly good: KeptSkill | null;
  readonly fault: {
    readonly reason: string;
    readonly files: readonly LoadedFile[];
    /** Its import ended the process, or did not end. */
    readonly isHostile: boolean;
  } | null;
}

interface Current {
  readonly end: AbortController;
  readonly since: number;
  isGivenUp: boolean;
}

export class AuthoredSkills {
  readonly #loads: PreparedLoads;
  #entries: ReadonlyMap<string, Entry> = new Map();
  /** Paths that were saved since the last load began. */
  #saved = new Set<string>();
  /** Files that are not imported by the next load, but by the one after it. */
  #deferred = new Set<string>();
  /** Files that were deferred by the last load. */
  #due = new Set<string>();
  /** The load that is under way. */
  #current: Current | undefined;

  constructor(loads: PreparedLoads) {
    this.#loads = loads;
  }

  /** Loads the skills as they are on the disk now. */
  async load(): Promise<ExecutorPool> {
    let hasSpentSave = false;
    for (let n = 1; ; n++) {
      const saved = this.#saved;
      const due = this.#due;
      const plan = this.#plan();
      this.#saved = new Set();
      this.#due = new Set();
      const { pool, end } = this.#loads.load(plan);
      const current = { end, since: performance.now(), isGivenUp: false };
      this.#current = current;
      // On a slow machine each repetition has more time to begin with a file.
      if (hasSpentSave) setTimeout(() => this.#giveUp(current), begunPatienceMs * n).unref();
      try {
        return this.#take(plan, await pool);
      } catch (error) {
        const file = error instanceof SkillLoadError ? error.file : null;
        // One that was given up before it began with a file is repeated.
        if ((file === null && !current.isGivenUp) || n >= loadsMax) throw error;
        // The next load is for these too.
        this.#saved = saved.union(this.#saved);
        this.#due = new Set(due);
        // The save that ended it has come: no other may follow to end the repetition, which may hang as well.
        hasSpentSave = file === null;
        if (!(error instanceof SkillLoadError)) continue;
        this.#due.delete(error.file);
        if (current.isGivenUp) {
          this.#deferred.add(error.file);
          this.#noteHostile(error.file, 'is still being imported');
        } else this.#noteHostile(error.file, error.message.slice(`${error.file}: `.length));
      } finally {
        this.#current = undefined;
      }
    }
  }

  /** Notes saved files before they are loaded. True where the load that is under way will load them. */
  noteSaved(paths: readonly string[]): boolean {
    for (const path of paths) this.#saved.add(path);
    const current = this.#current;
    if (current === undefined) return false;
    if (performance.now() - current.since < patienceMs) {
      // It may never end, and nothing else may be saved.
      setTimeout(() => this.#giveUp(current), begunPatienceMs).unref();
      return false;
    }
    this.#giveUp(current);
    return true;
  }

  /** All files of which the skills are made, with their stamps. */
  files(): ReadonlyMap<string, string> {
    return new Map(this.#files().map(({ path, stamp }) => [path, stamp]));
  }

  /** Whether the last load left files to the next one. */
  hasDeferred(): boolean {
    return this.#due.size > 0;
  }

  #giveUp(load: Current): void {
    if (this.#current !== load) return;
    load.isGivenUp = true;
    load.end.abort();
  }

  #noteHostile(file: string, reason: string): void {
    const good = this.#entries.get(file)?.good ?? null;
    const files = [selfOf(file), ...(good?.files ?? []).filter(({ path }) => path !== file)];
    const now = files.map((one) => ({ ...one, stamp: stampOf(one.path) }));
    const fault = { reason, files: now, isHostile: true };
    this.#entries = new Map(this.#entries).set(file, { good, fault });
  }

  /** What to import: each file that is new, or of which something has changed. */
  #plan(): LoadPlan {
    const entries = this.#entries;
    const deferred = this.#deferred;
    const known = new Set(this.#files().map(({ path }) => path));
    const strangers = [...this.#saved].filter((path) => !known.has(path));
    const isFresh = freshness();
    const unchanged: LoadPlan['unchanged'][number][] = [];
    const kept: KeptSkill[] = [];
    const avoided: string[] = [];
    for (const [file, { good, fault }] of entries) {
      const isDue = this.#due.has(file);
      const hasStranger = strangers.some((path) => mayRead(file, path));
      if (fault === null && !isDue && !hasStranger && good !== null && isFresh(good.files)) {
        unchanged.push(good.skill);
        continue;
      }
      if (good !== null) kept.push(good);
      if (fault?.isHostile !== true || isDue || !isFresh(fault.files)) continue;
      // Its imports may exist by now, but the other skills do not wait for it.
      if (strangers.length > 0) deferred.add(file);
      else avoided.push(file);
    }
    const deferredNow = [...deferred].filter((file) => !avoided.includes(file));
    return { unchanged, kept, avoided: [...avoided, ...deferredNow] };
  }

  /** Remembers the loaded modules; the pool reports all files that do not load. */
  #take({ avoided }: LoadPlan, pool: ExecutorPool): ExecutorPool {
    const before = this.#entries;
    const entries = new Map<string, Entry>();
    const files = (file: string) => pool.files?.get(file) ?? [selfOf(file)];
    const faults = new Map(pool.leftOut.map((one) => [one.file, one]));
    for (const skill of pool.definitions) {
      const { file } = skill;
      // A skill of the platform itself, which does not change.
      if (skill.code === null) continue;
      const good = pool.files?.has(file) === true ? { skill, files: files(file) } : undefined;
      const entry = before.get(file);
      if (faults.has(file) || avoided.includes(file)) continue;
      if (good !== undefined) entries.set(file, { good, fault: null });
      else if (entry !== undefined) entries.set(file, { ...entry, fault: null });
    }
    for (const [file, { reason }] of faults) {
      const good = before.get(file)?.good ?? null;
      entries.set(file, { good, fault: { reason, files: files(file), isHostile: false } });
    }
    for (const file of avoided) {
      const entry = before.get(file);
      if (entry !== undefined && existsSync(file)) entries.set(file, entry);
    }
    this.#entries = entries;
    this.#due = new Set([...this.#deferred].filter((file) => existsSync(file)));
    this.#deferred = new Set();
    pool.leftOut = leftOutOf(entries, pool.failing ?? new Set());
    return pool;
  }

  #files(): LoadedFile[] {
    return [...this.#entries.values()].flatMap(({ good, fault }) => [
      ...(good?.files ?? []),
      ...(fault?.files ?? []),
    ]);
  }
}

/** Whether a file that no skill imports may be read by the code of `file` while it loads. */
function mayRead(file: string, path: string): boolean {
  if (modulePattern.test(path) || basename(path).startsWith('.')) return false;
  // A folder with a SKILL.md is a skill of its own.
  return isSkillMd(file) ? path.startsWith(dirname(file) + sep) : true;
}

function freshness(): (files: readonly LoadedFile[]) => boolean {
  const stamps = new Map<string, string>();
  const now = (path: string): string => {
    const known = stamps.get(path) ?? stampOf(path);
    stamps.set(path, known);
    return known;
  };
  return (files) => files.every(({ path, stamp }) => now(path) === stamp);
}

function leftOutOf(
  entries: ReadonlyMap<string, Entry>,
  failing: ReadonlySet<string>,
): LeftOutSkill[] {
  return [...entries].flatMap(([file, { fault }]) =>
    fault === null ? [] : [{ file, reason: fault.reason, isFailing: failing.has(file) }],
  );
}

function selfOf(file: string): LoadedFile {
  return { path: file, stamp: stampOf(file), text: null, format: null };
}
