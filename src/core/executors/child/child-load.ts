/**
 * How an executor gets its skills: the first of a pool loads them and records the snapshot, by a plan or all of
 * them; later ones load the snapshot. Reports loads, found skills and faults to the parent.
 */
import { checkSchema, compileSchema } from '../../../kernel/json-schema.ts';
import { findSkillFiles, isSkillMd } from '../../skills/sources/find-modules.ts';
import { isInstalled } from '../../skills/sources/installation.ts';
import { keptUrl, provideKeptModules } from '../../skills/sources/kept-modules.ts';
import { SkillLoadError } from '../../skills/sources/load-error.ts';
import { type KeptSkill, type LoadPlan, stampOf } from '../../skills/sources/load-plan.ts';
import {
  type LoadedSkill,
  loadNext,
  loadSkillModule,
  loadSkillModules,
  type SkillModule,
} from '../../skills/sources/modules.ts';
import {
  loadFromSnapshot,
  type RecordedSkills,
  readRecorded,
  type Snapshot,
  SnapshotRecorder,
} from '../../skills/sources/snapshot.ts';
import { gather, type Outbox, send } from '../lines.ts';
import { describeFailure } from './failure.ts';
import type { Runnable } from './part.ts';

export interface ChildLoad {
  /** File descriptor of the skills snapshot. */
  readonly snapshotFd: number;
  readonly skillsDirs: readonly string[];
  /** Files that ended an earlier child: they are not loaded, their skills fail. */
  readonly setAside: readonly string[];
  /** What runs find, by key. */
  readonly skills: Map<string, Runnable>;
  /** To the parent. */
  readonly outbox: Outbox;
}

/** Loads what every load needs: the catalog and the validator of schemas. */
export async function prepareLoad(skillsDirs: readonly string[]): Promise<void> {
  await loadSkillModules(skillsDirs.filter((dir) => isInstalled(dir)));
  checkSchema({ type: 'object' });
}

/** Any fault ends this load, except in a SKILL.md, which often comes from another author. */
export async function loadFirst(load: ChildLoad): Promise<void> {
  const { snapshotFd, skillsDirs, outbox } = load;
  const recorder = new SnapshotRecorder(snapshotFd, skillsDirs);
  const { files, faults } = findSkillFiles(skillsDirs);
  for (const { error, isLeftOut } of faults) {
    if (!isLeftOut) throw error;
    leaveOut(load, error);
  }
  const modules: SkillModule[] = [];
  const owners = new Map<string, string>();
  for (const file of files) {
    try {
      modules.push(await loadFile(load, file, owners, recorder));
    } catch (error) {
      if (!isSkillMd(file) || !(error instanceof SkillLoadError)) throw error;
      leaveOut(load, error);
    }
  }
  recorder.seal({ ...recordOf(modules), kept: [] });
  for (const module of modules) {
    add(load, module);
    gather(outbox, ['skill', module.skill]);
  }
}

/** A skill that no longer loads fails its own runs; the other skills are loaded. */
export async function loadAgain(load: ChildLoad): Promise<void> {
  const { snapshotFd, skills, setAside, outbox } = load;
  const snapshot = loadFromSnapshot(snapshotFd);
  for (const { key, file } of snapshot.skills) {
    if (setAside.includes(file)) {
      skills.set(key, notLoaded(key));
      continue;
    }
    try {
      send(outbox, ['loading', file]);
      const module = await loadRecorded(snapshot, file);
      if (module.skill.key !== key) throw new SkillLoadError(file, `no longer defines ${key}`);
      add(load, module);
    } catch (error) {
      skills.set(key, notLoaded(key));
      send(outbox, ['unloaded', file, describeFailure(error).message]);
    }
  }
  for (const skill of snapshot.unchanged) {
    addLater(load, skill, () => loadRecorded(snapshot, skill.file));
  }
  addKept(load, snapshot.kept);
}

function loadRecorded(snapshot: Snapshot, file: string): Promise<SkillModule> {
  return loadSkillModule(file, { bytes: readRecorded(snapshot, file) });
}

/** Imports the files that the plan does not exclude. A fault costs the skill of its file alone. */
export async function loadByPlan(load: ChildLoad, plan: LoadPlan): Promise<void> {
  const { snapshotFd, skillsDirs, outbox } = load;
  const recorder = new SnapshotRecorder(snapshotFd, skillsDirs);
  const found = findSkillFiles(skillsDirs);
  for (const { error } of found.faults) leaveOut(load, error);
  const files = new Set(found.files);
  const unchanged = plan.unchanged.filter(({ file }) => files.has(file));
  for (const skill of unchanged) {
    addLater(load, skill, () => loadSkillModule(skill.file));
  }
  const owners = new Map(unchanged.map(({ key, file }) => [key, file]));
  const loaded: SkillModule[] = [];
  const passed = new Set([...unchanged.map(({ file }) => file), ...plan.avoided]);
  for (const file of files) {
    if (passed.has(file)) continue;
    try {
      const module = await loadFile(load, file, owners, recorder);
      add(load, module);
      loaded.push(module);
    } catch (error) {
      if (!(error instanceof SkillLoadError)) throw error;
      leaveOut(load, error);
    }
    if (!isInstalled(file)) gather(outbox, ['files', file, recorder.graph.filesOf(file)]);
  }
  const isLoaded = new Set(loaded.map(({ skill }) => skill.file));
  const kept = plan.kept.filter(
    ({ skill: { file, key } }) => files.has(file) && !isLoaded.has(file) && !owners.has(key),
  );
  addKept(load, kept);
  const recorded = recordOf(loaded);
  recorder.seal({ ...recorded, unchanged: [...unchanged, ...recorded.unchanged], kept });
  for (const [number, one] of kept.entries()) {
    const { file } = one.skill;
    if (!(await isUsable(load, one, number, plan))) gather(outbox, ['failing', file]);
  }
  const all = [...loaded, ...kept].map(({ skill }) => skill).concat(unchanged);
  for (const skill of all.sort((a, b) => (a.file < b.file ? -1 : 1)))
    gather(outbox, ['skill', skill]);
}

/** The parent is notified first, because the top-level code of a module may never return. */
function loadFile(
  { outbox }: ChildLoad,
  file: string,
  owners: Map<string, string>,
  recorder: SnapshotRecorder,
): Promise<SkillModule> {
  send(outbox, ['loading', file]);
  // The platform's own tests have checked the catalog's.
  return loadNext(file, owners, { checkSchemas: !isInstalled(file), recorder });
}

function leaveOut({ outbox }: ChildLoad, { file, message }: SkillLoadError): void {
  send(outbox, ['left-out', file, message]);
}

/** Later executors import those of the platform itself at their first run: that they load is known. */
function recordOf(modules: readonly SkillModule[]) {
  const skills: RecordedSkills['skills'][number][] = [];
  const unchanged: LoadedSkill[] = [];
  for (const { skill } of modules) {
    if (isInstalled(skill.file)) unchanged.push(skill);
    else skills.push({ key: skill.key, file: skill.file });
  }
  return { skills, unchanged };
}

function add({ skills }: ChildLoad, { skill, run }: SkillModule): void {
  skills.set(skill.key, {
    run,
    validateInput: compileSchema(skill.parameters),
    validateOutput: compileSchema(skill.output),
  });
}

/** Adds a skill that is imported at its first run. */
function addLater(load: ChildLoad, skill: LoadedSkill, read: () => Promise<SkillModule>): void {
  let module: Promise<SkillModule> | undefined;
  add(load, {
    skill,
    async run(input, ctx) {
      module ??= read();
      const { run } = await module.catch((error: unknown) => {
        module = undefined;
        // Its stack is for the operator's log only.
        throw Object.assign(new Error(noLongerLoads(skill.key)), { stack: String(error) });
      });
      return run(input, ctx);
    },
  });
}

function addKept(load: ChildLoad, kept: readonly KeptSkill[]): void {
  provideKeptModules(kept);
  for (const [number, { skill, files }] of kept.entries()) {
    addLater(load, skill, () => loadKept({ skill, files }, number));
  }
}

function loadKept({ skill: { file }, files }: KeptSkill, number: number): Promise<SkillModule> {
  const text = files.find(({ path }) => path === file)?.text;
  const bytes = text === null || text === undefined ? undefined : Buffer.from(text);
  return loadSkillModule(file, { bytes, url: keptUrl(file, number) });
}

/** Whether the runs of a kept skill can succeed: its packages, whose texts are not kept, may have changed or gone. */
async function isUsable(
  { outbox }: ChildLoad,
  kept: KeptSkill,
  number: number,
  { avoided }: LoadPlan,
): Promise<boolean> {
  const { file } = kept.skill;
  const now = kept.files.filter(({ text, path }) => text === null && path !== file);
  if (now.every(({ path, stamp }) => stampOf(path) === stamp)) return true;
  // Its import may not end, as that of the newest version does not.
  if (avoided.includes(file)) return now.every(({ path }) => stampOf(path) !== 'none');
  send(outbox, ['loading', file]);
  return loadKept(kept, number).then(
    () => true,
    () => false,
  );
}

function noLongerLoads(key: string): string {
  return `the skill ${key} no longer loads; the platform's log says why`;
}

/** The reason names files, so it goes to the operator's log and not to the caller. */
function notLoaded(key: string): Runnable {
  const none = (): null => null;
  return {
    run() {
      throw Object.assign(new Error(noLongerLoads(key)), { retryable: true });
    },
    validateInput: none,
    validateOutput: none,
  };
}
