/**
 * The registry of skill versions, for clients and for runs. Rows outlive definitions: ids are stable, and
 * a skill that is no longer defined becomes inactive instead of being deleted. Reads come from memory;
 * every change is written to the database first.
 */
import type { Database } from '../database/database.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { type Issue, PlatformError } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { compileSchema } from '../kernel/json-schema.ts';
import type { JsonSchema, SkillExample } from './definition.ts';
import {
  insertSkill,
  listSkillRows,
  type SkillRow,
  stateOfSkills,
  updateSkill,
} from './skills.store.ts';

/** The part of a definition that can be sent to another process: all but its code. */
export interface SkillFacts {
  readonly category: string;
  readonly name: string;
  readonly version: string;
  readonly displayName: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly output: JsonSchema;
  readonly requiredScopes?: readonly string[] | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxAttempts?: number | undefined;
  readonly continuesConversations?: boolean | undefined;
  readonly examples?: readonly SkillExample[] | undefined;
}

/** One version of a skill. */
export interface Skill {
  readonly id: string;
  readonly category: string;
  readonly name: string;
  readonly version: string;
  readonly displayName: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly output: JsonSchema;
  readonly requiredScopes: readonly string[];
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  /** Whether a request may continue an earlier conversation. */
  readonly continuesConversations: boolean;
  readonly examples: readonly SkillExample[];
  readonly isActive: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The faults of an input, or null. The schema is compiled at the first call. */
  inputIssues(input: unknown): readonly Issue[] | null;
}

/** Most versions that an error names. */
const versionsNamedMax = 10;
const defaults = { timeoutMs: 60_000, maxAttempts: 3 };

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
  /** The definition that accepted runs use, active or not; undefined when no process has loaded it. */
  definition(category: string, version: string, name: string): Skill | undefined;
  /** When its last definition went away; undefined while a process has loaded it, or if none ever had. */
  goneSince(category: string, version: string, name: string): number | undefined;
  /** Active skills, sorted by category, name and version; of one category when it is given. */
  list(category?: string): Skill[];
  /** Every version that was ever registered, in the same order. */
  listAll(): Skill[];
  /** Deprecates or activates a version (docs/decisions/skills.md); `404 skill_not_found` when it was never registered. */
  setDeprecated(
    category: string,
    version: string,
    name: string,
    deprecated: boolean,
  ): Promise<Skill>;
}

export function createSkillRegistry(database: Database, clock: Clock): SkillRegistry {
  let rows = new Map<string, SkillRow>();
  let skills = new Map<string, Skill>();
  /** The state that `refresh` read last. */
  let known = '';

  async function reload(): Promise<void> {
    const stored = await listSkillRows(database.read);
    const previousRows = rows;
    const previous = skills;
    rows = new Map(stored.map((row) => [skillKey(row.category, row.version, row.skill_name), row]));
    skills = new Map();
    for (const [key, row] of rows) {
      const known = previous.get(key);
      // An unchanged skill is kept, because it holds its compiled validator.
      skills.set(
        key,
        known !== undefined && isSameRow(row, previousRows.get(key)) ? known : toSkill(row),
      );
    }
  }

  function findActive(category: string, version: string, name: string): Skill | undefined {
    const skill = skills.get(skillKey(category, version, name));
    return skill?.isActive ? skill : undefined;
  }

  function notFound(
    category: string,
    version: string,
    name: string,
    what: 'active' | 'registered' = 'active',
  ): PlatformError {
    const versions = [...skills.values()]
      .filter((skill) => skill.category === category && skill.name === name)
      .filter((skill) => what === 'registered' || skill.isActive)
      .map((skill) => skill.version)
      .sort(compareVersions);
    return skillNotFound(skillKey(category, version, name), what, versions);
  }

  async function record(
    facts: readonly SkillFacts[],
    elsewhere: ReadonlySet<string>,
    isUpToDate: (row: SkillRow | undefined, fact: SkillFacts) => boolean,
    asOf = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    const now = clock.now();
    const defined = new Set(facts.map(factKey));
    const changed = facts.filter((fact) => !isUpToDate(rows.get(factKey(fact)), fact));
    const vanished = [...rows].filter(
      ([key, row]) =>
        row.defined === 1 && row.updated_at < asOf && !defined.has(key) && !elsewhere.has(key),
    );
    if (changed.length === 0 && vanished.length === 0) return;
    await database.write(async (tx) => {
      for (const fact of changed) {
        const row = rows.get(factKey(fact));
        const columns = { ...columnsOf(fact), defined: 1, updated_at: now };
        if (row !== undefined) await updateSkill(tx, row.id, columns);
        else await insertSkill(tx, { id: newId(), ...columns, deprecated: 0, created_at: now });
      }
      for (const [, row] of vanished) {
        await updateSkill(tx, row.id, { defined: 0, updated_at: now });
      }
    });
    await reload();
  }

  return {
    async register(facts, elsewhere = new Set()) {
      await reload();
      await record(facts, elsewhere, isStored);
    },

    async confirm(facts, elsewhere, asOf) {
      await reload();
      await record(facts, elsewhere, (row) => row?.defined === 1, asOf);
    },

    async refresh() {
      const state = await stateOfSkills(database.read);
      if (state === known) return;
      await reload();
      known = state;
    },

    active(category, version, name) {
      const skill = findActive(category, version, name);
      if (skill === undefined) throw notFound(category, version, name);
      return skill;
    },

    notFound: (category, version, name) => notFound(category, version, name),

    findActive,

    registered(category, version, name) {
      const skill = skills.get(skillKey(category, version, name));
      if (skill === undefined) throw notFound(category, version, name, 'registered');
      return skill;
    },

    definition(category, version, name) {
      const key = skillKey(category, version, name);
      return rows.get(key)?.defined === 1 ? skills.get(key) : undefined;
    },

    goneSince(category, version, name) {
      const row = rows.get(skillKey(category, version, name));
      return row?.defined === 0 ? row.updated_at : undefined;
    },

    list(category) {
      return [...skills.values()]
        .filter(
          (skill) => skill.isActive && (category === undefined || skill.category === category),
        )
        .sort(bySortKey);
    },

    listAll: () => [...skills.values()].sort(bySortKey),

    async setDeprecated(category, version, name, deprecated) {
      const key = skillKey(category, version, name);
      const row = rows.get(key);
      if (row === undefined) throw notFound(category, version, name, 'registered');
      if (row.deprecated !== Number(deprecated)) {
        await database.write((tx) =>
          updateSkill(tx, row.id, { deprecated: Number(deprecated), updated_at: clock.now() }),
        );
        await reload();
      }
      return skills.get(key) as Skill;
    },
  };
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

function factKey(fact: SkillFacts): string {
  return skillKey(fact.category, fact.version, fact.name);
}

/** Names the existing versions, because the version is the most frequent mistake. */
function skillNotFound(
  key: string,
  what: 'active' | 'registered',
  versions: readonly string[],
): PlatformError {
  const message = `No ${what} skill matches ${key.slice(0, 300)}`;
  const newest = versions.slice(-versionsNamedMax);
  const omitted = versions.length - newest.length;
  const others = omitted === 0 ? newest : [...newest, `${omitted} older ones`];
  return new PlatformError(
    'skill_not_found',
    others.length === 0 ? message : `${message}; ${what} versions: ${others.join(', ')}`,
  );
}

function columnsOf(fact: SkillFacts) {
  return {
    category: fact.category,
    skill_name: fact.name,
    version: fact.version,
    display_name: fact.displayName,
    description: fact.description,
    parameters_schema: JSON.stringify(fact.parameters),
    output_schema: JSON.stringify(fact.output),
    required_scopes: JSON.stringify(fact.requiredScopes ?? [fact.category]),
    timeout_ms: fact.timeoutMs ?? defaults.timeoutMs,
    max_attempts: fact.maxAttempts ?? defaults.maxAttempts,
    continues_conversations: Number(fact.continuesConversations ?? false),
    examples: JSON.stringify(fact.examples ?? []),
  };
}

function isStored(row: SkillRow | undefined, fact: SkillFacts): boolean {
  if (row === undefined || row.defined === 0) return false;
  return Object.entries(columnsOf(fact)).every(
    ([name, value]) => row[name as keyof SkillRow] === value,
  );
}

function isSameRow(a: SkillRow, b: SkillRow | undefined): boolean {
  if (b === undefined) return false;
  return (Object.keys(a) as (keyof SkillRow)[]).every((column) => a[column] === b[column]);
}

function toSkill(row: SkillRow): Skill {
  const parameters = JSON.parse(row.parameters_schema) as JsonSchema;
  let validate: ((input: unknown) => readonly Issue[] | null) | undefined;
  return {
    id: row.id,
    category: row.category,
    name: row.skill_name,
    version: row.version,
    displayName: row.display_name,
    description: row.description,
    parameters,
    output: JSON.parse(row.output_schema) as JsonSchema,
    requiredScopes: JSON.parse(row.required_scopes) as string[],
    timeoutMs: row.timeout_ms,
    maxAttempts: row.max_attempts,
    continuesConversations: row.continues_conversations === 1,
    examples: JSON.parse(row.examples) as SkillExample[],
    isActive: row.defined === 1 && row.deprecated === 0,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    inputIssues(input) {
      validate ??= compileSchema(parameters);
      return validate(input);
    },
  };
}

/** By category, name, then version as numbers: v1.10 comes after v1.9. */
function bySortKey(a: Skill, b: Skill): number {
  return (
    compareText(a.category, b.category) ||
    compareText(a.name, b.name) ||
    compareVersions(a.version, b.version)
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.slice(1).split('.').map(Number);
  const [majorB = 0, minorB = 0] = b.slice(1).split('.').map(Number);
  return majorA - majorB || minorA - minorB;
}

/** A skill as a list returns it. */
export function skillSummary(skill: Skill) {
  return {
    id: skill.id,
    category: skill.category,
    skill_name: skill.name,
    version: skill.version,
    display_name: skill.displayName,
    description: skill.description,
    required_scopes: [...skill.requiredScopes],
    is_active: skill.isActive,
    created_at: timestamp(skill.createdAt),
    updated_at: timestamp(skill.updatedAt),
  };
}

/** A skill as a single read returns it. */
export function skillDetail(skill: Skill) {
  return {
    ...skillSummary(skill),
    parameters_schema: skill.parameters as Record<string, unknown>,
    output_schema: skill.output as Record<string, unknown>,
  };
}
