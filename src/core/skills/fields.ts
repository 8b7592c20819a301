/**
 * The fields of a skill's definition, all but its code: how each is checked, what it is when left out, and the
 * column of its row. Unknown fields are refused, so that a misspelt `timeoutMS` is not ignored.
 */
import { isObject } from '../../kernel/json.ts';
import { nearestName } from '../../kernel/misspelt.ts';
import type { SkillDefinition } from './definition.ts';
import * as check from './field-checks.ts';
import { concurrencyFault, rateFault } from './limits.ts';
import type { SkillRow } from './skills.store.ts';
import { mcpFault } from './sources/mcp-shape.ts';
import { settingsFault } from './sources/settings-shape.ts';
import { checkTimeoutField } from './time-limits.ts';

/** The part of a skill's definition that can be sent to another process. */
export type SkillFacts = Omit<SkillDefinition, 'run'>;
type Facts = Required<SkillFacts>;

/** The columns that the definition of a skill decides. */
type Columns = Omit<SkillRow, 'id' | OfOutside | Flags | 'created_at' | 'updated_at'>;
type OfOutside = 'remote_source_id' | 'organizations';
type Flags = 'defined' | 'deprecated';

interface Field<Value> {
  /** Undefined for a valid value, else the end of the sentence: `must be …`. */
  readonly check: (value: unknown, skill: Record<string, unknown>) => string | undefined;
  readonly column: keyof Columns;
  /** How the column holds it: 0 or 1 for a flag. */
  readonly as?: 'json' | 'flag';
  /** Its value where a definition leaves it out; a field without one is required. */
  readonly whenLeftOut?: (definition: SkillFacts) => Value;
}

const fields: { readonly [Name in keyof Facts]: Field<Facts[Name]> } = {
  category: { check: check.checkCategory, column: 'category' },
  name: { check: check.checkName, column: 'skill_name' },
  version: { check: check.checkVersion, column: 'version' },
  displayName: {
    check: (value) => check.checkText(value, 200, 'characters', (text) => text.length),
    column: 'display_name',
  },
  description: {
    check: (value) => check.checkText(value, 65_536, 'bytes', Buffer.byteLength),
    column: 'description',
  },
  parameters: { check: check.checkObject, column: 'parameters_schema', as: 'json' },
  output: { check: check.checkObject, column: 'output_schema', as: 'json' },
  requiredScopes: {
    check: check.checkScopes,
    column: 'required_scopes',
    as: 'json',
    whenLeftOut: ({ category }) => [category],
  },
  timeoutMs: {
    check: (value) => check.checkInteger(value, 3_600_000),
    column: 'timeout_ms',
    whenLeftOut: () => 60_000,
  },
  timeoutField: {
    check: (value, { parameters }) => checkTimeoutField(value, parameters),
    column: 'timeout_field',
    whenLeftOut: () => null,
  },
  maxAttempts: {
    check: (value) => check.checkInteger(value, 20),
    column: 'max_attempts',
    whenLeftOut: () => 3,
  },
  examples: {
    check: check.checkExamples,
    column: 'examples',
    as: 'json',
    whenLeftOut: () => [],
  },
  config: { check: settingsFault, column: 'config', as: 'json', whenLeftOut: () => ({}) },
  concurrency: {
    check: concurrencyFault,
    column: 'concurrency',
    as: 'json',
    whenLeftOut: () => [],
  },
  rate: { check: rateFault, column: 'rate', as: 'json', whenLeftOut: () => [] },
  slowsDown: {
    check: check.checkFlag,
    column: 'slows_down',
    as: 'flag',
    whenLeftOut: () => false,
  },
  continuesConversations: {
    check: check.checkFlag,
    column: 'continues_conversations',
    as: 'flag',
    whenLeftOut: () => false,
  },
  taskField: {
    check: (value, { parameters }) => check.checkTextField(value, 'parameters', parameters),
    column: 'task_field',
    whenLeftOut: () => null,
  },
  answerField: {
    check: (value, { output }) => check.checkTextField(value, 'output', output),
    column: 'answer_field',
    whenLeftOut: () => null,
  },
  mcp: { check: mcpFault, column: 'mcp', as: 'json', whenLeftOut: () => null },
};
const all = Object.entries(fields) as [keyof Facts, Field<unknown>][];

/** What is wrong with a definition. */
export interface DefinitionFault {
  /** The field at fault; null where it is the whole. */
  readonly field: string | null;
  /** The end of a sentence that begins with the file's name. */
  readonly message: string;
}

/** The fault of the value as a skill, or undefined: the end of a sentence that begins with the file's name. */
export function skillFault(value: unknown): string | undefined {
  return definitionFault(value)?.message;
}

/** The fault of the value as a skill, with its field. */
export function definitionFault(value: unknown): DefinitionFault | undefined {
  if (value === undefined) {
    const message =
      'has no default export; a skill is the default export, and the name of a file that is none begins with _';
    return { field: null, message };
  }
  if (!isObject(value)) {
    return { field: null, message: `its default export ${check.mustBe('a skill object', value)}` };
  }
  const unknown = unknownField(value);
  // It is probably the one that is missing.
  if (unknown?.isNear === true) return unknown;
  for (const [name, field] of all) {
    if (value[name] === undefined && field.whenLeftOut !== undefined) continue;
    const fault = field.check(value[name], value);
    if (fault !== undefined) return { field: name, message: `${name} ${fault}` };
  }
  if (typeof value['run'] === 'function') return unknown;
  return { field: 'run', message: `run ${check.mustBe('a function', value['run'])}` };
}

const names = [...all.map(([name]) => name), 'run'];

/** A field that no skill has, and the one that was probably meant. */
function unknownField(
  skill: Record<string, unknown>,
): (DefinitionFault & { isNear: boolean }) | undefined {
  const field = Object.keys(skill).find((name) => !names.includes(name));
  if (field === undefined) return undefined;
  const missing = names.filter((name) => skill[name] === undefined);
  const lower = (name: string) => name.toLowerCase();
  const near = nearestName(lower(field), missing.map(lower));
  const meant = missing.find((name) => lower(name) === near);
  const message = `has the unknown field ${check.show(field)}`;
  return meant === undefined
    ? { field, message, isNear: false }
    : { field, message: `${message}: did you mean ${meant}?`, isNear: true };
}

/** The facts of a definition, with the defaults of what it leaves out. */
export function completeFacts(definition: SkillFacts): Facts {
  const facts = all.map(([name, { whenLeftOut }]) => [
    name,
    definition[name] ?? whenLeftOut?.(definition),
  ]);
  return Object.fromEntries(facts) as Facts;
}

export function columnsOf(definition: SkillFacts): Columns {
  const facts = completeFacts(definition);
  const columns = all.map(([name, { column, as }]) => [column, toColumn(facts[name], as)]);
  return Object.fromEntries(columns) as Columns;
}

export function factsOf(row: SkillRow): Facts {
  const facts = all.map(([name, { column, as }]) => [name, ofColumn(row[column], as)]);
  return Object.fromEntries(facts) as Facts;
}

function toColumn(value: unknown, as: Field<unknown>['as']): unknown {
  if (as === 'flag') return Number(value);
  return as === 'json' && value !== null ? JSON.stringify(value) : value;
}

function ofColumn(value: unknown, as: Field<unknown>['as']): unknown {
  if (as === 'flag') return value === 1;
  return as === 'json' && value !== null ? JSON.parse(value as string) : value;
}
