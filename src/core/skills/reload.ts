/**
 * Loads the skills again while the platform runs. A new set of skills is loaded beside the one in use; if it
 * loads, and no version changes in a way that its callers would notice, new runs go to it and the earlier set
 * ends with its last run. Promises that a fault changes nothing, and that at most one reload is under way.
 */
import type { Clock } from '../../kernel/clock.ts';
import { timestamp } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { incompatibilities } from './compatibility.ts';
import type { ReloadResult, ReloadTrigger, SkillFault } from './reload.schemas.ts';
import type { LeftOutSkill } from './sources/load-error.ts';
import { SkillLoadError } from './sources/load-error.ts';
import type { LoadedSkill } from './sources/modules.ts';

/** Earlier sets that may still have runs; each holds the memory of its executors. */
const drainingMax = 2;
/** Differences that a result names, and faults. */
const differencesMax = 100;
const faultsMax = 100;

/** What one load of the skills gave. */
export interface SkillSet {
  readonly definitions: readonly LoadedSkill[];
  readonly leftOut: readonly LeftOutSkill[];
}

/** The set that takes new runs, and its replacement. */
export interface ReplaceableSkills<Loaded extends SkillSet> extends SkillSet {
  load(): Promise<Loaded>;
  swap(next: Loaded): Loaded;
  retire(set: Loaded): Promise<void>;
  draining(): number;
  giveUpOldest(): Promise<void>;
}

export interface ReloadDeps<Loaded extends SkillSet> {
  readonly skills: ReplaceableSkills<Loaded>;
  /** Stores the definitions, and marks those that no process has any more. */
  readonly register: (definitions: readonly LoadedSkill[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug' | 'info' | 'error'>;
  /** An author's platform: a version may change in any way, and old runs do not hold up a reload. */
  readonly isForced: boolean;
}

/** Reloads; a call while a reload is under way waits for the next one, which begins after it. */
export type Reload = (trigger: ReloadTrigger) => Promise<ReloadResult>;

export function createReload<Loaded extends SkillSet>(deps: ReloadDeps<Loaded>): Reload {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<ReloadResult> | undefined;
  return (trigger) => {
    // What it loads is read after this call, so all calls that wait can share it.
    next ??= running.then(() => {
      const result = reload(deps, trigger);
      running = result;
      next = undefined;
      return result;
    });
    return next;
  };
}

type Outcome = Omit<ReloadResult, 'trigger' | 'started_at' | 'ended_at'>;

/** Never throws. */
async function reload<Loaded extends SkillSet>(
  deps: ReloadDeps<Loaded>,
  trigger: ReloadTrigger,
): Promise<ReloadResult> {
  const { clock, log } = deps;
  const started_at = timestamp(clock.now());
  const outcome = await replace(deps).catch((error: unknown) => refusal(deps, faultOf(error)));
  const result = { ...outcome, trigger, started_at, ended_at: timestamp(clock.now()) };
  const { status, reason, file, line, column, differences, added, changed, removed } = result;
  if (deps.isForced) {
    // Its author is told in words.
    const facts = { trigger, status, reason, file, line, column, added, changed, removed };
    log.debug(facts, 'a reload ended');
  } else if (status === 'reloaded') {
    log.info({ trigger, added, changed, removed }, 'the skills were reloaded');
  } else {
    const facts = { trigger, reason, file, line, column, differences };
    log.error(facts, 'the skills were not reloaded; those that were loaded before stay in use');
  }
  return result;
}

async function replace<Loaded extends SkillSet>(deps: ReloadDeps<Loaded>): Promise<Outcome> {
  const { skills, isForced, log, register } = deps;
  if (skills.draining() >= drainingMax) {
    if (!isForced) {
      return refusal(deps, {
        reason: 'two earlier sets of skills still finish their runs; try again',
      });
    }
    await skills.giveUpOldest();
  }
  const { definitions: before, leftOut: faultsBefore } = skills;
  const next = await skills.load();
  const differences = differencesOf(before, next.definitions);
  if (differences.length > 0 && !isForced) {
    void skills.retire(next);
    const [first] = differences;
    const reason = `${first?.skill} would break its callers: ${first?.difference}; give it a new version`;
    const file = next.definitions.find(({ key }) => key === first?.skill)?.file ?? null;
    return refusal(deps, { reason, file, differences });
  }
  const earlier = skills.swap(next);
  try {
    await register(next.definitions);
  } catch (error) {
    skills.swap(earlier);
    void skills.retire(next);
    throw error;
  }
  const told = isForced ? 'debug' : 'info';
  void skills.retire(earlier).then(() => log[told]('an earlier set of skills has ended'));
  const changes = changesBetween(before, next.definitions);
  const faults = faultsOf(next);
  const fault = isForced ? newFault(changes, faultsBefore, faults) : undefined;
  if (fault === undefined) return { ...changes, ...noFault, differences, faults };
  const { reason, file, line, column } = fault;
  return { ...changes, status: 'refused', reason, file, line, column, differences, faults };
}

/** The fault of a reload that has changed nothing else. */
function newFault(
  changes: Readonly<Record<string, readonly string[]>>,
  before: readonly LeftOutSkill[],
  faults: readonly SkillFault[],
): SkillFault | undefined {
  if (Object.values(changes).some((skills) => skills.length > 0)) return undefined;
  const isKnown = ({ file, reason }: SkillFault) =>
    before.some((one) => one.file === file && one.reason === reason);
  return faults.find((fault) => !isKnown(fault));
}

const noPlace = { file: null, line: null, column: null };
const noFault = { status: 'reloaded', reason: null, ...noPlace } as const;

/** What was in use stays in use, so its faults do too. */
function refusal<Loaded extends SkillSet>(
  { skills }: Pick<ReloadDeps<Loaded>, 'skills'>,
  fault: Partial<Outcome> & { reason: string },
): Outcome {
  const nothing = { added: [], changed: [], removed: [], differences: [] };
  return { ...noFault, ...nothing, faults: faultsOf(skills), ...fault, status: 'refused' };
}

/** What ended a load, with the place that the loader named in its sentence. */
function faultOf(
  error: unknown,
): Pick<ReloadResult, 'file' | 'line' | 'column'> & { reason: string } {
  const reason = error instanceof Error ? error.message : String(error);
  if (!(error instanceof SkillLoadError)) return { reason, ...noPlace };
  return { reason, ...placeOf(reason, error.file) };
}

function placeOf(reason: string, file: string): Pick<SkillFault, 'file' | 'line' | 'column'> {
  const [, line, column, place] =
    /\(line (\d+)(?:, column (\d+))?(?: of (.+))?\)$/.exec(reason) ?? [];
  const numberOf = (digits: string | undefined) => (digits === undefined ? null : Number(digits));
  return { file: place ?? file, line: numberOf(line), column: numberOf(column) };
}

/** What a set leaves out, or has in an earlier version. */
export function faultsOf({ leftOut, definitions }: SkillSet): SkillFault[] {
  return leftOut.slice(0, faultsMax).map(({ file, reason, isFailing = false }) => {
    const last = definitions.find((skill) => skill.file === file)?.key ?? null;
    const use = isFailing ? { serving: null, failing: last } : { serving: last, failing: null };
    return { ...placeOf(reason, file), reason, ...use };
  });
}

function differencesOf(
  before: readonly LoadedSkill[],
  next: readonly LoadedSkill[],
): ReloadResult['differences'] {
  const earlier = byKey(before);
  return next
    .flatMap((skill) => {
      const was = earlier.get(skill.key);
      const found = was === undefined ? [] : incompatibilities(was, skill);
      return found.map((difference) => ({ skill: skill.key, difference }));
    })
    .slice(0, differencesMax);
}

function changesBetween(before: readonly LoadedSkill[], next: readonly LoadedSkill[]) {
  const [earlier, later] = [byKey(before), byKey(next)];
  const isChanged = (skill: LoadedSkill) => {
    const was = earlier.get(skill.key);
    return was !== undefined && canonicalJson(was) !== canonicalJson(skill);
  };
  return {
    added: next.map(({ key }) => key).filter((key) => !earlier.has(key)),
    changed: next.filter(isChanged).map(({ key }) => key),
    removed: before.map(({ key }) => key).filter((key) => !later.has(key)),
  };
}

function byKey(skills: readonly LoadedSkill[]): ReadonlyMap<string, LoadedSkill> {
  return new Map(skills.map((skill) => [skill.key, skill]));
}
