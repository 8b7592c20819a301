/**
 * Skills as tools of the Model Context Protocol. Each active version of a skill is `category.name.v1.0`, and the newest one
 * is `category.name` too. A list has the names of versions where there are several, because a model that sees every tool
 * twice chooses worse; a client may ask for all. Pure; the order of a list depends on the names alone.
 */
import { createHash } from 'node:crypto';
import { type Caller, hasScopes } from '../kernel/caller.ts';
import { type Json, objectOf } from '../kernel/json.ts';
import type { Skill } from '../skills/registry.ts';

/** Characters of a tool's name that the protocol allows. */
const nameMax = 128;
/** Characters of the digest that tells cut names apart. */
const digestChars = 8;

/** A tool as `tools/list` shows it. */
export interface ListedTool {
  readonly [key: string]: unknown;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: { readonly [key: string]: unknown; readonly type: 'object' };
  readonly outputSchema?: { readonly [key: string]: unknown };
}

/** A tool that runs a version of a skill. */
export interface SkillTool {
  readonly skill: Skill;
  readonly listed: ListedTool;
  /** Whether the input of the skill is the field `input`, because a tool takes an object only. */
  readonly isWrapped: boolean;
}

/** The tools of a set of skills. */
export interface ToolSet {
  /** By every name that can be called. */
  readonly byName: ReadonlyMap<string, SkillTool>;
  /** Those that a list shows, by name. */
  readonly listed: readonly SkillTool[];
  /** Under all their names, by name. */
  readonly all: readonly SkillTool[];
}

/** The tools of active skills, which come in the order of the registry: versions ascending. */
export function toolsOf(skills: readonly Skill[]): ToolSet {
  const byName = new Map<string, SkillTool>();
  const listed: SkillTool[] = [];
  const add = (name: string, skill: Skill, isListed: boolean) => {
    // Two skills that ask for the same name: the first has it, as the order is always the same.
    if (byName.has(name)) return;
    const tool = toolOf(name, skill);
    byName.set(name, tool);
    if (isListed) listed.push(tool);
  };
  for (const [i, skill] of skills.entries()) {
    const isNewest = !isSameSkill(skill, skills[i + 1]);
    const isAlone = isNewest && !isSameSkill(skill, skills[i - 1]);
    if (isNewest) add(cut(baseName(skill)), skill, true);
    add(versionName(skill), skill, !isAlone);
  }
  const byOrder = (a: SkillTool, b: SkillTool) => (a.listed.name < b.listed.name ? -1 : 1);
  return { byName, listed: listed.sort(byOrder), all: [...byName.values()].sort(byOrder) };
}

/** Whether the caller may run the skill of a tool. */
export function mayCall({ scopes }: Caller, { skill }: SkillTool): boolean {
  return hasScopes(scopes, skill.requiredScopes);
}

/** The input of the skill in the arguments of a call. */
export function inputOf({ isWrapped }: SkillTool, given: Json | undefined): unknown {
  return isWrapped ? given?.['input'] : (given ?? {});
}

function isSameSkill(a: Skill, b: Skill | undefined): boolean {
  return b !== undefined && a.category === b.category && a.name === b.name;
}

function baseName({ category, name, mcp }: Skill): string {
  return mcp?.name ?? `${category}.${name}`;
}

/** The name of this version, whatever comes after it. */
function versionName(skill: Skill): string {
  return cut(`${baseName(skill)}.${skill.version}`);
}

/** A name of any length within the protocol's limit. */
function cut(name: string): string {
  if (name.length <= nameMax) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, digestChars);
  return `${name.slice(0, nameMax - digestChars - 1)}-${digest}`;
}

function toolOf(name: string, skill: Skill): SkillTool {
  const { schema, isWrapped } = objectSchema(skill.parameters);
  const outputSchema = outputSchemaOf(skill);
  return {
    skill,
    isWrapped,
    listed: {
      name,
      title: skill.displayName,
      description: skill.description,
      inputSchema: schema,
      ...(outputSchema === undefined ? {} : { outputSchema }),
      _meta: { 'skillwright/version_name': versionName(skill) },
    },
  };
}

/** What decides the form of a result. */
export type ResultSkill = Pick<Skill, 'mcp' | 'output'>;

/** The schema of the structured content of a skill's results; undefined where it promises none. */
export function outputSchemaOf(skill: ResultSkill | undefined): Skill['output'] | undefined {
  const isPromised = skill?.mcp?.content !== true && Object.keys(skill?.output ?? {}).length > 0;
  if (!isPromised) return undefined;
  return skill?.mcp?.content === 'beside' ? withoutBeside(skill.output) : skill?.output;
}

/** The field of an output that has the blocks beside it. */
export const besideField = '_content';

/** The blocks are no part of the structured content. */
function withoutBeside(output: Skill['output']): Skill['output'] {
  const { [besideField]: _, ...properties } = objectOf(output['properties']) ?? {};
  return { ...output, properties };
}

/** The schema of a tool's arguments, which are always an object. */
function objectSchema(parameters: Skill['parameters']): {
  schema: ListedTool['inputSchema'];
  isWrapped: boolean;
} {
  const { type } = parameters;
  const takesObject =
    type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'));
  if (takesObject) return { schema: { ...parameters, type: 'object' }, isWrapped: false };
  const { $schema, $defs, definitions, ...input } = parameters;
  const shared = Object.entries({ $schema, $defs, definitions }).filter(([, value]) => value);
  return {
    schema: {
      ...Object.fromEntries(shared),
      type: 'object',
      properties: { input: objectOf(input) ?? {} },
      required: ['input'],
    },
    isWrapped: true,
  };
}
