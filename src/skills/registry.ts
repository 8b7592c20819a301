/**
 * The registry of skill versions, for clients and for runs. Rows outlive definitions: ids are stable, and
 * a skill that is no longer defined becomes inactive instead of being deleted. Reads come from memory;
 * every change is written to the database first.
 */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Validate } from '../kernel/json-schema.ts';
import type { SkillFacts } from './fields.ts';
import {
  bySortKey,
  compareVersions,
  definedColumns,
  isSameRow,
  isStored,
  toSkill,
} from './skill-rows.ts';
import {
  insertSkill,
  listSkillRows,
  type SkillRow,
  stateOfSkills,
  updateSkill,
} from './skills.store.ts';

/** One version of a skill. */
export interface Skill extends Required<SkillFacts> {
  readonly id: string;
  readonly isActive: boolean;
  /** Whether it declares settings. */
  readonly hasConfig: boolean;
  /** The service outside that runs it; null for a skill that executors load. */
  readonly remoteSourceId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The faults of an input, or null. The schema is compiled at the first call. */
  readonly inputIssues: Validate;
}

/** Most versions that an error names. */
const versionsNamedMax = 10;

export interface SkillRegistry {
  /**
   * Stores the skills of `facts`: adds new ones, updates changed ones, and marks absent ones inactive
   * unless another process has loaded them (`elsewhere`, by key).
   */
  register(facts: readonly SkillFacts[], elsewhere?: ReadonlySet<string>): Promise<void>;
  /**
   * Like `register`, for a process that has already registered `facts`. Later changes by another process
   * are kept, because they may be newer. `elsewhere` was read at `asOf`, so a skill that has changed
   * since then is not marked inactive.
   */
  confirm(
    facts: readonly SkillFacts[],
    elsewhere: ReadonlySet<string>,
    asOf: number,
  ): Promise<void>;
  /** Reloads the changes of other processes. */
  refresh(): Promise<void>;
  /** The active skill of that tuple, or `404 skill_not_found`. */
  active(category: string, version: string, name: string): Skill;
  /** The error that `active` throws; it names the active versions of the skill. */
  notFound(category: string, version: string, name: string): PlatformError;
  /** Like `active`, undefined when there is none. */
  findActive(category: string, version: string, name: string): Skill | undefined;
  /** The version of that tuple, active or not, or `404 skill_not_found` when it was never registered. */
  registered(category: string, version: string, name: string): Skill;
  /** The version of that id, active or not, or `404 skill_not_found`. */
  byId(id: string): Skill;
  /** The definition that accepted runs use, active or not; undefined when no process has loaded it. */
  definition(category: string, version: string, name: string): Skill | undefined;
  /** The service outside that runs the skill of that key; null where executors do, or where there is none. */
  sourceOf(key: string): string | null;
  /** When its last definition went away; undefined while a process has loaded it, or if none ever had. */
  goneSince(category: string, version: string, name: string): number | undefined;
  /** Active skills, sorted by category, name and version; of one category when it is given. */
  list(category?: string): Skill[];
  /** Every version that was ever registered, in the same order. */
  listAll(): Skill[];
  /** Calls the listener after each change of a skill that this process learns of. */
  onChange(listener: () => void): void;
  /** Deprecates or activates a version (docs/decisions/skills.md); `404 skill_not_found` when it was never registered. */
  setDeprecated(
    category: string,
    version: string,
    name: string,
    deprecated: boolean,
  ): Promise<Skill>;
}

interface State {
  readonly database: Database;
  readonly clock: Clock;
  /** By key, as are `skills`. */
  rows: ReadonlyMap<string, SkillRow>;
  skills: ReadonlyMap<string, Skill>;
  /** The state that `refresh` read last. */
  known: string;
  readonly listeners: (() => void)[];
}

export function createSkillRegistry(database: Database, clock: Clock): SkillRegistry {
  const state: State = {
    ...{ database, clock, rows: new Map(), skills: new Map(), known: '' },
    listeners: [],
  };
  return {
    async register(facts, elsewhere = new Set()) {
      await reload(state);
      await record(state, { facts, elsewhere, isUpToDate: isStored });
    },
    async confirm(facts, elsewhere, asOf) {
      await reload(state);
      await record(state, { facts, elsewhere, isUpToDate: (row) => row?.defined === 1, asOf });
    },
    refresh: () => refresh(state),
    active(category, version, name) {
      const skill = findActive(state, skillKey(category, version, name));
      if (skill === undefined) throw notFound(state, 'active', category, version, name);
      return skill;
    },
    notFound: (category, version, name) => notFound(state, 'active', category, version, name),
    findActive: (category, version, name) => findActive(state, skillKey(category, version, name)),
    registered(category, version, name) {
      const skill = state.skills.get(skillKey(category, version, name));
      if (skill === undefined) throw notFound(state, 'registered', category, version, name);
      return skill;
    },
    byId(id) {
      for (const skill of state.skills.values()) if (skill.id === id) return skill;
      throw new PlatformError('skill_not_found', 'No version of a skill has this id');
    },
    definition(category, version, name) {
      const key = skillKey(category, version, name);
      return state.rows.get(key)?.defined === 1 ? state.skills.get(key) : undefined;
    },
    sourceOf: (key) => state.skills.get(key)?.remoteSourceId ?? null,
    goneSince(category, version, name) {
      const row = state.rows.get(skillKey(category, version, name));
      return row?.defined === 0 ? row.updated_at : undefined;
    },
    list: (category) => list(state, category),
    listAll: () => [...state.skills.values()].sort(bySortKey),
    onChange: (listener) => void state.listeners.push(listener),
    setDeprecated: (category, version, name, deprecated) =>
      setDeprecated(state, [category, version, name], deprecated),
  };
}

async function reload(state: State): Promise<void> {
  const stored = await listSkillRows(state.database.read);
  const before = { rows: state.rows, skills: state.skills };
  state.rows = new Map(
    stored.map((row) => [skillKey(row.category, row.version, row.skill_name), row]),
  );
  state.skills = new Map(
    Array.from(state.rows, ([key, row]) => {
      // An unchanged skill is kept, because it holds its compiled validator.
      const known = isSameRow(row, before.rows.get(key)) ? before.skills.get(key) : undefined;
      return [key, known ?? toSkill(row)];
    }),
  );
  const isUnchanged =
    state.skills.size === before.skills.size &&
    state.skills.entries().every(([key, skill]) => before.skills.get(key) === skill);
  if (!isUnchanged) for (const listener of state.listeners) listener();
}

async function refresh(state: State): Promise<void> {
  const stored = await stateOfSkills(state.database.read);
  if (stored === state.known) return;
  await reload(state);
  state.known = stored;
}

interface Found {
  readonly facts: readonly SkillFacts[];
  /** The keys of the skills that other processes have loaded. */
  readonly elsewhere: ReadonlySet<string>;
  readonly isUpToDate: (row: SkillRow | undefined, facts: SkillFacts) => boolean;
  /** Rows that have changed since then are not marked as gone. */
  readonly asOf?: number;
}

/** Stores the skills that this process has loaded, and marks those that no process has loaded. */
async function record(
  state: State,
  { facts, elsewhere, isUpToDate, asOf = Number.POSITIVE_INFINITY }: Found,
): Promise<void> {
  const { rows, clock } = state;
  const now = clock.now();
  const defined = new Set(facts.map(keyOf));
  const changed = facts.filter((one) => !isUpToDate(rows.get(keyOf(one)), one));
  const vanished = [...rows].filter(
    ([key, row]) =>
      row.defined === 1 &&
      row.remote_source_id === null &&
      row.updated_at < asOf &&
      !defined.has(key) &&
      !elsewhere.has(key),
  );
  if (changed.length === 0 && vanished.length === 0) return;
  await state.database.write(async (tx) => {
    for (const one of changed) {
      const row = state.rows.get(keyOf(one));
      const columns = { ...definedColumns(one), updated_at: now };
      if (row !== undefined) await updateSkill(tx, row.id, columns);
      else await insertSkill(tx, { id: newId(), ...columns, deprecated: 0, created_at: now });
    }
    for (const [, row] of vanished) {
      await updateSkill(tx, row.id, { defined: 0, updated_at: now });
    }
  });
  await reload(state);
}

function findActive({ skills }: State, key: string): Skill | undefined {
  const skill = skills.get(key);
  return skill?.isActive ? skill : undefined;
}

function list({ skills }: State, category: string | undefined): Skill[] {
  return [...skills.values()]
    .filter((skill) => skill.isActive && (category === undefined || skill.category === category))
    .sort(bySortKey);
}

async function setDeprecated(
  state: State,
  [category, version, name]: [string, string, string],
  deprecated: boolean,
): Promise<Skill> {
  const { database, clock } = state;
  const key = skillKey(category, version, name);
  const row = state.rows.get(key);
  if (row === undefined) throw notFound(state, 'registered', category, version, name);
  if (row.deprecated !== Number(deprecated)) {
    const changes = { deprecated: Number(deprecated), updated_at: clock.now() };
    await database.write((tx) => updateSkill(tx, row.id, changes));
    await reload(state);
  }
  return state.skills.get(key) as Skill;
}

/** Names the existing versions, because the version is the most frequent mistake. */
function notFound(
  { skills }: State,
  what: 'active' | 'registered',
  category: string,
  version: string,
  name: string,
): PlatformError {
  const versions = [...skills.values()]
    .filter((skill) => skill.category === category && skill.name === name)
    .filter((skill) => what === 'registered' || skill.isActive)
    .map((skill) => skill.version)
    .sort(compareVersions);
  const message = `No ${what} skill matches ${skillKey(category, version, name).slice(0, 300)}`;
  const newest = versions.slice(-versionsNamedMax);
  const omitted = versions.length - newest.length;
  const others = omitted === 0 ? newest : [...newest, `${omitted} older ones`];
  return new PlatformError(
    'skill_not_found',
    others.length === 0 ? message : `${message}; ${what} versions: ${others.join(', ')}`,
  );
}

/** The name of a skill everywhere outside the API's paths: `category/version/name`. */
export function skillKey(category: string, version: string, name: string): string {
  return `${category}/${version}/${name}`;
}

/** Category, version and name of a key that `skillKey` made. */
export function skillKeyParts(key: string): [category: string, version: string, name: string] {
  const [category = '', version = '', name = ''] = key.split('/');
  return [category, version, name];
}

function keyOf({ category, version, name }: SkillFacts): string {
  return skillKey(category, version, name);
}
