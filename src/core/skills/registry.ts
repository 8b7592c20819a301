/**
 * The registry of skill versions, for clients and for runs. Rows outlive definitions: ids are stable, and
 * a skill that is no longer defined becomes inactive instead of being deleted. Reads come from memory;
 * every change is written to the database first. A lookup names the organization for which it is made: a skill
 * that does not belong to it is answered like one that was never registered (docs/decisions/organizations.md).
 */
import type { Database } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Context } from '../context/context.ts';
import type { SkillFacts } from './fields.ts';
import type { InputSchema } from './input-schema.ts';
import type { SkillLimit } from './limits.ts';
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
  /** How many of its runs go on at a time, and how often they start. */
  readonly limits: readonly SkillLimit[];
  /** Whether it declares settings. */
  readonly hasConfig: boolean;
  /** The service outside that runs it; null for a skill that executors load. */
  readonly remoteSourceId: string | null;
  /** The organizations that it belongs to; null for all. */
  readonly organizations: ReadonlySet<string> | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly input: InputSchema;
}

/** Most versions that an error names. */
const versionsNamedMax = 10;

/** The organization for which a skill is looked up, and the skill's category, version and name. */
export type SkillLookup = readonly [
  organizationId: string,
  category: string,
  version: string,
  name: string,
];

type SkillTuple = readonly [category: string, version: string, name: string];

/** The columns of a row that name a skill. */
export interface SkillColumns {
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
}

/** The lookup of the skill that a row of an organization names. */
export function lookupOf(
  organizationId: string,
  { skill_category, skill_version, skill_name }: SkillColumns,
): SkillLookup {
  return [organizationId, skill_category, skill_version, skill_name];
}

export interface ChangedSkills {
  /** The organizations that the changed skills belong to or belonged to; null for all. */
  readonly organizations: ReadonlySet<string> | null;
}

/** The skills of all organizations, as this process knows them. */
export class SkillRegistry {
  readonly #database: Database;
  readonly #clock: Clock;
  /** By key, as are `#skills`. */
  #rows: ReadonlyMap<string, SkillRow> = new Map();
  #skills: ReadonlyMap<string, Skill> = new Map();
  /** The limits of skills that have some, by key; also of those that are no longer defined. */
  #limits: ReadonlyMap<string, readonly SkillLimit[]> = new Map();
  /** The organizations that skills belong to by name. */
  #named: ReadonlySet<string> = new Set();
  /** The state that `refresh` read last. */
  #known = '';
  readonly #listeners: ((changed: ChangedSkills) => void)[] = [];

  constructor({ database, clock }: Context) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Stores the skills of `facts`: adds new ones, updates changed ones, and marks absent ones inactive
   * unless another process has loaded them (`elsewhere`, by key).
   */
  async register(
    facts: readonly SkillFacts[],
    elsewhere: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    await this.#reload();
    await this.#record(facts, elsewhere);
  }

  /**
   * Like `register`, for a process that has already registered `facts`. Later changes by another process
   * are kept, because they may be newer. `elsewhere` was read at `asOf`, so a skill that has changed
   * since then is not marked inactive.
   */
  async confirm(
    facts: readonly SkillFacts[],
    elsewhere: ReadonlySet<string>,
    asOf: number,
  ): Promise<void> {
    await this.#reload();
    await this.#record(facts, elsewhere, asOf);
  }

  /** Reloads the changes of other processes. */
  async refresh(): Promise<void> {
    const stored = await stateOfSkills(this.#database.read);
    if (stored === this.#known) return;
    await this.#reload();
    this.#known = stored;
  }

  /** The active skill of that tuple, or `404 skill_not_found`. */
  active(...lookup: SkillLookup): Skill {
    const skill = this.findActive(...lookup);
    if (skill === undefined) throw this.notFound(...lookup);
    return skill;
  }

  /** The error that `active` throws; it names the active versions of the skill. */
  notFound(...lookup: SkillLookup): PlatformError {
    return this.#notFound('active', lookup);
  }

  /** Like `active`, undefined when there is none. */
  findActive(...lookup: SkillLookup): Skill | undefined {
    const skill = this.#find(lookup);
    return skill?.isActive ? skill : undefined;
  }

  /** The version of that tuple, active or not, or `404 skill_not_found` when it was never registered. */
  registered(...lookup: SkillLookup): Skill {
    const skill = this.#find(lookup);
    if (skill === undefined) throw this.#notFound('registered', lookup);
    return skill;
  }

  /** The version of that id, active or not, or `404 skill_not_found`. */
  byId(organizationId: string, id: string): Skill {
    for (const skill of this.#skills.values()) {
      if (skill.id === id && belongsTo(skill, organizationId)) return skill;
    }
    throw new PlatformError('skill_not_found', 'No version of a skill has this id');
  }

  /** The definition that accepted runs use, active or not; undefined when no process has loaded it. */
  definition(...lookup: SkillLookup): Skill | undefined {
    const [, ...tuple] = lookup;
    return this.#rows.get(skillKey(...tuple))?.defined === 1 ? this.#find(lookup) : undefined;
  }

  /** The service outside that runs the skill of that key; null where executors do, or where there is none. */
  sourceOf(key: string): string | null {
    return this.#skills.get(key)?.remoteSourceId ?? null;
  }

  /**
   * The skill of that key that a service outside runs, also where it was withdrawn, from an organization or from all: its
   * run ends with the reason. Undefined for all other skills.
   */
  remoteSkill(key: string): Skill | undefined {
    const skill = this.#skills.get(key);
    return skill?.remoteSourceId === null ? undefined : skill;
  }

  /** The limits of the skills that have some, by key. */
  get limits(): ReadonlyMap<string, readonly SkillLimit[]> {
    return this.#limits;
  }

  /** When its last definition went away; undefined while a process has loaded it, or if none ever had. */
  goneSince(category: string, version: string, name: string): number | undefined {
    const row = this.#rows.get(skillKey(category, version, name));
    return row?.defined === 0 ? row.updated_at : undefined;
  }

  /** Active skills, sorted by category, name and version; of one category when it is given. */
  list(organizationId: string, category?: string): Skill[] {
    return [...this.#skills.values()]
      .filter((skill) => skill.isActive && (category === undefined || skill.category === category))
      .filter((skill) => belongsTo(skill, organizationId))
      .sort(bySortKey);
  }

  /**
   * A text that is the same for organizations with the same skills: empty for those to which no skill belongs by name.
   */
  audienceOf(organizationId: string): string {
    return this.#named.has(organizationId) ? organizationId : '';
  }

  /** For the administrator: every version that was ever registered, of all organizations, in the same order. */
  listAll(): Skill[] {
    return [...this.#skills.values()].sort(bySortKey);
  }

  /** For the administrator: like `registered`, for the versions of every organization. */
  registeredAnywhere(...tuple: SkillTuple): Skill {
    const skill = this.#skills.get(skillKey(...tuple));
    if (skill === undefined) throw noMatch('registered', tuple, [...this.#skills.values()]);
    return skill;
  }

  /** Calls the listener after each change of skills that this process learns of. */
  onChange(listener: (changed: ChangedSkills) => void): void {
    this.#listeners.push(listener);
  }

  /** Deprecates or activates a version (docs/decisions/skills.md); `404 skill_not_found` when it was never registered. */
  async setDeprecated(
    category: string,
    version: string,
    name: string,
    deprecated: boolean,
  ): Promise<Skill> {
    const key = skillKey(category, version, name);
    const row = this.#rows.get(key);
    if (row === undefined) {
      throw noMatch('registered', [category, version, name], [...this.#skills.values()]);
    }
    if (row.deprecated !== Number(deprecated)) {
      const changes = { deprecated: Number(deprecated), updated_at: this.#clock.now() };
      await this.#database.write((tx) => updateSkill(tx, row.id, changes));
      await this.#reload();
    }
    return this.#skills.get(key) as Skill;
  }

  async #reload(): Promise<void> {
    const stored = await listSkillRows(this.#database.read);
    const before = { rows: this.#rows, skills: this.#skills };
    this.#rows = new Map(
      stored.map((row) => [skillKey(row.category, row.version, row.skill_name), row]),
    );
    this.#skills = new Map(
      Array.from(this.#rows, ([key, row]) => {
        // An unchanged skill is kept, because it holds its compiled validator.
        const known = isSameRow(row, before.rows.get(key)) ? before.skills.get(key) : undefined;
        return [key, known ?? toSkill(row)];
      }),
    );
    this.#limits = new Map(
      [...this.#skills].flatMap(([key, { limits }]) => (limits.length > 0 ? [[key, limits]] : [])),
    );
    this.#named = new Set(
      this.#skills.values().flatMap(({ organizations }) => organizations ?? []),
    );
    const changed = changesBetween(before.skills, this.#skills);
    if (changed.length === 0) return;
    const organizations = organizationsOf(changed);
    for (const listener of this.#listeners) listener({ organizations });
  }

  /**
   * Stores the skills that this process has loaded, and marks those that no process has loaded. With `asOf`, defined
   * skills stay as they are, and those that have changed since then are not marked.
   */
  async #record(
    facts: readonly SkillFacts[],
    elsewhere: ReadonlySet<string>,
    asOf?: number,
  ): Promise<void> {
    const now = this.#clock.now();
    const defined = new Set(facts.map(keyOf));
    const changed = facts.filter((one) => {
      const row = this.#rows.get(keyOf(one));
      return asOf === undefined ? !isStored(row, one) : row?.defined !== 1;
    });
    const vanished = [...this.#rows].filter(
      ([key, row]) =>
        row.defined === 1 &&
        row.remote_source_id === null &&
        (asOf === undefined || row.updated_at < asOf) &&
        !defined.has(key) &&
        !elsewhere.has(key),
    );
    if (changed.length === 0 && vanished.length === 0) return;
    await this.#database.write(async (tx) => {
      for (const one of changed) {
        const row = this.#rows.get(keyOf(one));
        const columns = { ...definedColumns(one), updated_at: now };
        if (row !== undefined) await updateSkill(tx, row.id, columns);
        else await insertSkill(tx, { id: newId(), ...columns, deprecated: 0, created_at: now });
      }
      for (const [, row] of vanished) {
        await updateSkill(tx, row.id, { defined: 0, updated_at: now });
      }
    });
    await this.#reload();
  }

  #find([organizationId, ...tuple]: SkillLookup): Skill | undefined {
    const skill = this.#skills.get(skillKey(...tuple));
    return skill !== undefined && belongsTo(skill, organizationId) ? skill : undefined;
  }

  #notFound(what: 'active' | 'registered', [organizationId, ...tuple]: SkillLookup): PlatformError {
    const known = [...this.#skills.values()].filter((skill) => belongsTo(skill, organizationId));
    return noMatch(what, tuple, known);
  }
}

/** The skills that differ, as they were and as they are. */
function changesBetween(
  before: ReadonlyMap<string, Skill>,
  now: ReadonlyMap<string, Skill>,
): Skill[] {
  const keys = new Set([...before.keys(), ...now.keys()]);
  return [...keys]
    .filter((key) => before.get(key) !== now.get(key))
    .flatMap((key) => [before.get(key) ?? [], now.get(key) ?? []].flat());
}

/** The organizations that any of the skills belongs to; null for all. */
function organizationsOf(skills: readonly Skill[]): ReadonlySet<string> | null {
  const named = new Set<string>();
  for (const { organizations } of skills) {
    if (organizations === null) return null;
    for (const one of organizations) named.add(one);
  }
  return named;
}

function belongsTo({ organizations }: Skill, organizationId: string): boolean {
  return organizations === null || organizations.has(organizationId);
}

/** Names the existing versions, because the version is the most frequent mistake. */
function noMatch(
  what: 'active' | 'registered',
  [category, version, name]: SkillTuple,
  known: readonly Skill[],
): PlatformError {
  const versions = known
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
