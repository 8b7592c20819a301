/**
 * Loads the skills again while the platform runs. A new set of skills is loaded beside the one in use; if it
 * loads, and no version changes in a way that breaks its callers, new runs go to it and the earlier set
 * ends with its last run. Promises that a fault changes nothing, and that at most one reload is under way.
 */

import type { Context } from '../../core/context/context.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { SkillSets } from '../../core/executors/skill-sets.ts';
import { incompatibilities } from '../../core/skills/compatibility.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { type LeftOutSkill, SkillLoadError } from '../../core/skills/sources/load-error.ts';
import type { LoadedSkill } from '../../core/skills/sources/modules.ts';
import { timestamp } from '../../kernel/clock.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { Processes } from '../processes/processes.ts';
import type { ReloadResult, ReloadTrigger, SkillFault } from './reload.schemas.ts';

/** Earlier sets that may still have runs; each holds the memory of its executors. */
const drainingMax = 2;
/** Differences that a result names, and faults. */
const differencesMax = 100;
const faultsMax = 100;

type Outcome = Omit<ReloadResult, 'trigger' | 'started_at' | 'ended_at'>;

/** The reloads of this process. */
export class LocalReloads {
  readonly #context: Context;
  readonly #sets: SkillSets;
  readonly #skills: SkillRegistry;
  readonly #members: Processes | null;
  readonly #isForced: boolean;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<ReloadResult> | undefined;

  /**
   * `members` is null where the platform is one process. `isForced` is set on the platform of an author: a version may change in any way, and old runs do not hold up a reload.
   */
  constructor(
    context: Context,
    sets: SkillSets,
    skills: SkillRegistry,
    members: Processes | null,
    isForced: boolean,
  ) {
    this.#context = context;
    this.#sets = sets;
    this.#skills = skills;
    this.#members = members;
    this.#isForced = isForced;
  }

  /** Reloads; a call while a reload is under way waits for the next one, which begins after it. */
  reload(trigger: ReloadTrigger): Promise<ReloadResult> {
    // What it loads is read after this call, so all calls that wait can share it.
    this.#next ??= this.#running.then(() => {
      const result = this.#reload(trigger);
      this.#running = result;
      this.#next = undefined;
      return result;
    });
    return this.#next;
  }

  /** The faults of the set in use. */
  faults(): SkillFault[] {
    return faultsOf(this.#sets);
  }

  /** Never throws. */
  async #reload(trigger: ReloadTrigger): Promise<ReloadResult> {
    const { clock, log } = this.#context;
    const started_at = timestamp(clock.now());
    const outcome = await this.#replace().catch((error: unknown) => this.#refusal(faultOf(error)));
    const result = { ...outcome, trigger, started_at, ended_at: timestamp(clock.now()) };
    const { status, reason, file, line, column, differences, added, changed, removed } = result;
    if (this.#isForced) {
      // `skillwright dev` prints the result for its author.
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

  async #replace(): Promise<Outcome> {
    const sets = this.#sets;
    const isForced = this.#isForced;
    if (sets.draining() >= drainingMax) {
      if (!isForced) {
        const reason = 'two earlier sets of skills still finish their runs; try again';
        return this.#refusal({ reason });
      }
      await sets.giveUpOldest();
    }
    const { definitions: before, leftOut: faultsBefore } = sets;
    const next = await sets.load();
    const differences = differencesOf(before, next.definitions);
    if (differences.length > 0 && !isForced) {
      void sets.retire(next);
      const [first] = differences;
      const reason = `${first?.skill} would break its callers: ${first?.difference}; give it a new version`;
      const file = next.definitions.find(({ key }) => key === first?.skill)?.file ?? null;
      return this.#refusal({ reason, file, differences });
    }
    await this.#use(next);
    const changes = changesBetween(before, next.definitions);
    const faults = faultsOf(next);
    const fault = isForced ? newFault(changes, faultsBefore, faults) : undefined;
    if (fault === undefined) return { ...changes, ...noFault, differences, faults };
    const { reason, file, line, column } = fault;
    return { ...changes, status: 'refused', reason, file, line, column, differences, faults };
  }

  /** Gives new runs to a set, unless its definitions cannot be stored. */
  async #use(next: ExecutorPool): Promise<void> {
    const sets = this.#sets;
    const { log } = this.#context;
    const earlier = sets.swap(next);
    try {
      // The other processes learn first which skills are loaded here now.
      await this.#members?.beat();
      await this.#skills.register(next.definitions, this.#members?.skills());
    } catch (error) {
      sets.swap(earlier);
      void sets.retire(next);
      throw error;
    }
    const level = this.#isForced ? 'debug' : 'info';
    void sets.retire(earlier).then(() => log[level]('an earlier set of skills has ended'));
  }

  /** The set in use stays in use, and its faults remain. */
  #refusal(fault: Partial<Outcome> & { reason: string }): Outcome {
    const nothing = { added: [], changed: [], removed: [], differences: [] };
    return { ...noFault, ...nothing, faults: this.faults(), ...fault, status: 'refused' };
  }
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

/** The error that ended a load, with the place that the loader named in its message. */
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

/** The files of a set that do not load; each is left out, or in use in an earlier version. */
function faultsOf({ leftOut, definitions }: ExecutorPool): SkillFault[] {
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
      const known = earlier.get(skill.key);
      const found = known === undefined ? [] : incompatibilities(known, skill);
      return found.map((difference) => ({ skill: skill.key, difference }));
    })
    .slice(0, differencesMax);
}

function changesBetween(before: readonly LoadedSkill[], next: readonly LoadedSkill[]) {
  const [earlier, later] = [byKey(before), byKey(next)];
  const isChanged = (skill: LoadedSkill) => {
    const known = earlier.get(skill.key);
    return known !== undefined && canonicalJson(known) !== canonicalJson(skill);
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
