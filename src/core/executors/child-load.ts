/**
 * How an executor gets its skills: the first of a pool loads them and records the snapshot, by a plan or all of
 * them; later ones load the snapshot. Tells the parent what is being loaded, what was found and what failed.
 */
import { checkSchema, compileSchema } from '../../kernel/json-schema.ts';
import { findSkillFiles } from '../skills/sources/find-modules.ts';
import { isInstalled } from '../skills/sources/installation.ts';
import { keptUrl, provideKeptModules } from '../skills/sources/kept-modules.ts';
import { SkillLoadError } from '../skills/sources/load-error.ts';
import { type KeptSkill, type LoadPlan, stampOf } from '../skills/sources/load-plan.ts';
import {
  type LoadedSkill,
  loadNext,
  loadSkillModule,
  loadSkillModules,
  type SkillModule,
} from '../skills/sources/modules.ts';
import {
  loadFromSnapshot,
  type RecordedSkills,
  recordSnapshot,
  type SnapshotRecorder,
} from '../skills/sources/snapshot.ts';
import { describeFailure } from './failure.ts';
import { gather, type Outbox, send } from './lines.ts';
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
export async function prepareLoad({ skillsDirs }: Pick<ChildLoad, 'skillsDirs'>): Promise<void> {
  await loadSkillModules(skillsDirs.filter((dir) => isInstalled(dir)));
  checkSchema({ type: 'object' });
}

/** Any fault ends this load. */
export async function loadFirst(deps: ChildLoad): Promise<void> {
  const { snapshotFd, skillsDirs, outbox } = deps;
  const snapshot = recordSnapshot(snapshotFd, skillsDirs);
  const modules = await loadSkillModules(skillsDirs, {
    ...optionsOf(deps, snapshot),
    onLeftOut: ({ file, message }) => send(outbox, ['left-out', file, message]),
  });
  snapshot.seal({ ...recordOf(modules), kept: [] });
  for (const module of modules) {
    add(deps, module);
    gather(outbox, ['skill', module.skill]);
  }
}

/** A skill that no longer loads fails its own runs; the other skills are loaded. */
export async function loadAgain(deps: ChildLoad): Promise<void> {
  const { snapshotFd, skills, setAside, outbox } = deps;
  const snapshot = loadFromSnapshot(snapshotFd);
  for (const { key, file } of snapshot.skills) {
    if (setAside.includes(file)) {
      skills.set(key, notLoaded(key));
      continue;
    }
    try {
      send(outbox, ['loading', file]);
      const module = await loadSkillModule(file, snapshot);
      if (module.skill.key !== key) throw new SkillLoadError(file, `no longer defines ${key}`);
      add(deps, module);
    } catch (error) {
      skills.set(key, notLoaded(key));
      send(outbox, ['unloaded', file, describeFailure(error).message]);
    }
  }
  for (const skill of snapshot.unchanged) {
    addLater(deps, skill, () => loadSkillModule(skill.file, snapshot));
  }
  addKept(deps, snapshot.kept);
}

/** Imports the files that the plan does not exclude. A fault costs the skill of its file alone. */
export async function loadByPlan(deps: ChildLoad, plan: LoadPlan): Promise<void> {
  const { snapshotFd, skillsDirs, outbox } = deps;
  const snapshot = recordSnapshot(snapshotFd, skillsDirs);
  const leaveOut = ({ file, message }: SkillLoadError) => send(outbox, ['left-out', file, message]);
  const files = new Set(findSkillFiles(skillsDirs, { onFault: leaveOut, onLeftOut: leaveOut }));
  const unchanged = plan.unchanged.filter(({ file }) => files.has(file));
  for (const skill of unchanged) {
    addLater(deps, skill, () => loadSkillModule(skill.file, snapshot));
  }
  const owners = new Map(unchanged.map(({ key, file }) => [key, file]));
  const options = optionsOf(deps, snapshot);
  const loaded: SkillModule[] = [];
  const passed = new Set([...unchanged.map(({ file }) => file), ...plan.avoided]);
  for (const file of files) {
    if (passed.has(file)) continue;
    try {
      const module = await loadNext(file, owners, options);
      add(deps, module);
      loaded.push(module);
    } catch (error) {
      if (!(error instanceof SkillLoadError)) throw error;
      leaveOut(error);
    }
    if (!isInstalled(file)) gather(outbox, ['files', file, snapshot.graph.filesOf(file)]);
  }
  const isLoaded = new Set(loaded.map(({ skill }) => skill.file));
  const kept = plan.kept.filter(
    ({ skill: { file, key } }) => files.has(file) && !isLoaded.has(file) && !owners.has(key),
  );
  addKept(deps, kept);
  const recorded = recordOf(loaded);
  snapshot.seal({ ...recorded, unchanged: [...unchanged, ...recorded.unchanged], kept });
  for (const [number, one] of kept.entries()) {
    const { file } = one.skill;
    if (!(await isUsable(deps, one, number, plan))) gather(outbox, ['failing', file]);
  }
  const all = [...loaded, ...kept].map(({ skill }) => skill).concat(unchanged);
  for (const skill of all.sort((a, b) => (a.file < b.file ? -1 : 1)))
    gather(outbox, ['skill', skill]);
}

function optionsOf({ outbox }: ChildLoad, { read, graph }: SnapshotRecorder) {
  return {
    onFile: (file: string) => send(outbox, ['loading', file]),
    // The platform's own tests have checked the catalog's.
    checkSchemas: (file: string) => !isInstalled(file),
    read,
    codeOf: (file: string) => (isInstalled(file) ? null : graph.codeOf(file)),
  };
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
function addLater(deps: ChildLoad, skill: LoadedSkill, load: () => Promise<SkillModule>): void {
  let module: Promise<SkillModule> | undefined;
  add(deps, {
    skill,
    async run(input, ctx) {
      module ??= load();
      const { run } = await module.catch((error: unknown) => {
        module = undefined;
        // Its stack is for the operator's log only.
        throw Object.assign(new Error(noLongerLoads(skill.key)), { stack: String(error) });
      });
      return run(input, ctx);
    },
  });
}

function addKept(deps: ChildLoad, kept: readonly KeptSkill[]): void {
  provideKeptModules(kept);
  for (const [number, { skill, files }] of kept.entries()) {
    addLater(deps, skill, () => loadKept({ skill, files }, number));
  }
}

function loadKept({ skill: { file }, files }: KeptSkill, number: number): Promise<SkillModule> {
  const text = files.find(({ path }) => path === file)?.text;
  const read = () => (text === null || text === undefined ? undefined : Buffer.from(text));
  return loadSkillModule(file, { read }, keptUrl(file, number));
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
