/**
 * Gates: may this job start now, and if not, what does it wait for? A gate is a limit together with whose work it counts, such
 * as the runs of one skill for one user. A job passes when each of its gates has a free place and nothing waits there; else it
 * is held at the first that has none. Pure: what is taken comes from the rows (`places.ts`).
 */
import { limitOfOrganization, ofWhom } from '../../limits/limit-names.ts';
import type { LimitScope } from '../../skills/definition.ts';
import type { SkillLimit } from '../../skills/limits.ts';
import { type SkillColumns, skillKey } from '../../skills/registry.ts';
import { isRate, windowOf } from './rates.ts';

/** Characters of a client's own key. */
export const concurrencyKeyMax = 200;

export interface Gate {
  readonly name: string;
  /** Places. */
  readonly limit: number;
}

/** What decides which gates work has. */
export interface GatedWork extends SkillColumns {
  readonly organization_id: string;
  readonly agent_id: string;
  readonly api_key_id: string;
  readonly user_id: string;
  readonly concurrency_key?: string | null | undefined;
  /** `waiting` where it goes on after a wait. */
  readonly status?: string | undefined;
}

/** How a gate stands. */
export interface GateUse {
  /** Places that are taken. */
  taken: number;
  /** Whether work waits for a place. */
  readonly isContested: boolean;
}

const limitOfSkill = /^(?:concurrency|rate) of (\S+)(?: per (\S+))?/;
const isOfSkill = /^(?:concurrency|rate|pause|pause after a refusal) of (\S+\/\S+)/;

const refusal = 'pause after a refusal of ';

/** The pause of work on what has refused a request; it ends by itself. */
export const pauseAfterRefusal = (of: string) => `${refusal}${of}`;

/** Whether a gate is a pause that ends by itself. */
export const isTimedPause = (gate: string) => gate.startsWith(refusal);

/** Whether a gate is passed by what starts, and not by what goes on after a wait. */
export const isOfStarts = (gate: string) => isTimedPause(gate) || isRate(gate);

/** The gates of work on a skill that has these limits. */
export function gatesOf(limits: readonly SkillLimit[], work: GatedWork): Gate[] {
  const { skill_category, skill_version, skill_name } = work;
  const skill = skillKey(skill_category, skill_version, skill_name);
  return limits.map(({ limit, per, perSeconds, afterRefusal }) => {
    if (afterRefusal) return { name: pauseAfterRefusal(skill), limit };
    const words = `${perSeconds === undefined ? 'concurrency' : 'rate'} of ${skill}`;
    const counted = per === 'platform' ? words : `${words} per ${per}`;
    const parts = [per === 'platform' ? undefined : whoseWork(per, work), perSeconds];
    const given = parts.filter((part) => part !== undefined);
    return { name: given.length === 0 ? counted : `${counted}${ofWhom}${given.join(' ')}`, limit };
  });
}

/** Users, agents and the keys of clients are told apart by organization. */
function whoseWork(per: Exclude<LimitScope, 'platform'>, work: GatedWork): string {
  const { organization_id } = work;
  switch (per) {
    case 'organization':
      return organization_id;
    case 'agent':
      return `${organization_id} ${work.agent_id}`;
    case 'user':
      return `${organization_id} ${work.user_id}`;
    case 'key':
      return work.api_key_id;
    case 'client-key':
      return `${organization_id} ${work.concurrency_key ?? ''}`;
  }
}

/** What a job that is held at a gate waits for, in words. */
export function waitingFor(gate: string): string {
  return gate.split(ofWhom, 1)[0] as string;
}

/**
 * What a transaction locks for a gate: one lock for all gates of a skill and an organization, or of a key. Work has few of them,
 * and a batch with a thousand keys of clients has no more.
 */
export function lockOf(gate: string): string {
  const [, skill = ''] = isOfSkill.exec(gate) ?? [];
  const at = gate.indexOf(ofWhom);
  if (at < 0) return skill === '' ? gate : skill;
  return `${skill} ${gate.slice(at + ofWhom.length).split(' ', 1)[0]}`;
}

/** The places of a gate now; any number where its limit was removed. */
export function placesOf(
  gate: string,
  limits: ReadonlyMap<string, readonly SkillLimit[]>,
  settings: ReadonlyMap<string, number>,
): number {
  const set = settings.get(gate);
  if (set !== undefined) return set;
  const [, skill = '', per = 'platform'] = limitOfSkill.exec(gate) ?? [];
  const windowMs = windowOf(gate);
  const limit = limits
    .get(skill)
    ?.find(
      (one) =>
        one.per === per &&
        (one.perSeconds === undefined ? null : one.perSeconds * 1_000) === windowMs,
    );
  return limit?.limit ?? Number.POSITIVE_INFINITY;
}

/**
 * Whether a turn of an organization gives places to its calls before its jobs: one of two, spread so that each organization has
 * both.
 */
export function isTurnOfCalls(turn: number): boolean {
  return Math.imul(turn, 0x9e3779b1) >>> 0 < 0x80000000;
}

/**
 * From which priority on a turn of a gate begins a job; null where the highest goes first. It is one of eight turns, and of
 * them every second one for the lowest priority. They are spread by the golden ratio: every eighth turn would always be the
 * same organization's where 2, 4 or 8 organizations go round.
 */
export function lowerPriorityOf(turn: number): 1 | 2 | null {
  const place = Math.imul(turn, 0x9e3779b1) >>> 0;
  if (place < 0xe0000000) return null;
  return place < 0xf0000000 ? 1 : 2;
}

/** How many turns in a row, from `turn` on, begin jobs of the highest priority that waits; 1 to `max`. */
export function turnsOfHighest(turn: number, max: number): number {
  let turns = 1;
  while (turns < max && lowerPriorityOf(turn + turns) === null) turns += 1;
  return turns;
}

/** How many share a gate: 0 for the work of one of them, 1 for an organization's, 2 for that of all, 3 for starts. */
function breadthOf(gate: string): number {
  if (isOfStarts(gate)) return 3;
  const [, , per = 'platform'] = limitOfSkill.exec(gate) ?? [];
  if (limitOfSkill.test(gate)) return per === 'platform' ? 2 : Number(per === 'organization');
  return Number(gate.startsWith(limitOfOrganization('')));
}

/**
 * Whether a gate leaves a free place to a work that waits for places of several: once all gates that fewer share have one, too,
 * for a place that many share is not to be idle while others are full.
 */
export function leavesPlace(
  gates: readonly Gate[],
  taken: ReadonlyMap<string, number>,
  gate: string,
): boolean {
  const inOrder = gates.toSorted((a, b) => breadthOf(a.name) - breadthOf(b.name));
  const full = inOrder.findIndex(({ name, limit }) => (taken.get(name) ?? 0) >= limit);
  const at = inOrder.findIndex(({ name }) => name === gate);
  return at >= 0 && (full < 0 || at < full);
}

/** Work that may begin, and the places that it takes. */
export interface Passing {
  readonly id: string;
  readonly gates: readonly Gate[];
}

/**
 * Which of the works pass, in their order, and at which gate each of the others is held. `own` names the places that works
 * have already, as `gate id`.
 */
export function passGates(
  works: readonly Passing[],
  uses: ReadonlyMap<string, GateUse>,
  own: ReadonlySet<string> = new Set(),
): { readonly passed: Passing[]; readonly held: { readonly id: string; readonly gate: string }[] } {
  const passed: Passing[] = [];
  const held: { id: string; gate: string }[] = [];
  const taken = new Map<string, number>();
  const use = (name: string) => taken.get(name) ?? uses.get(name)?.taken ?? 0;
  const contested = new Set([...uses].flatMap(([name, one]) => (one.isContested ? [name] : [])));
  for (const { id, gates } of works) {
    const needed = gates.filter(({ name }) => !own.has(placeOf(name, id)));
    const full = needed.find(({ name, limit }) => contested.has(name) || use(name) >= limit);
    if (full === undefined) {
      for (const { name } of needed) taken.set(name, use(name) + 1);
      passed.push({ id, gates: needed });
    } else {
      // Those behind it wait too, so that they begin in their order.
      contested.add(full.name);
      held.push({ id, gate: full.name });
    }
  }
  return { passed, held };
}

/** A place of a job, as a text. */
export const placeOf = (gate: string, id: string) => `${gate}\n${id}`;
