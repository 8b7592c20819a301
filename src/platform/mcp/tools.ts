/**
 * Skills as tools of the Model Context Protocol. Each active version of a skill is `category__name__v1_0`, and the newest
 * one is `category__name` too. The protocol allows dots, but clients refuse a server that has one, since their models'
 * providers take letters, digits, `_` and `-` alone, and 64 of them. A list has the names of versions where there are
 * several, because a model that sees every tool twice chooses worse; a client may ask for all. Pure; names and the order
 * of a list depend on the skills alone.
 */

import type { Skill } from '../../core/skills/registry.ts';
import {
  fittingToolName,
  keyOf,
  markedToolName,
  toolName,
} from '../../core/thinking/tool-offers.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { type Json, objectOf } from '../../kernel/json.ts';

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
  // Of two skills that take the same name the first has it, and the other a digest at its end.
  const free = (name: string, key: string) => (byName.has(name) ? markedToolName(name, key) : name);
  for (const [i, skill] of skills.entries()) {
    const isNewest = !isSameSkill(skill, skills[i + 1]);
    const isAlone = isNewest && !isSameSkill(skill, skills[i - 1]);
    const version = free(versionName(skill), keyOf(skill));
    const own = toolOf(version, skill, version);
    byName.set(version, own);
    if (!isAlone) listed.push(own);
    if (!isNewest) continue;
    const name = free(baseName(skill), `${skill.category}/${skill.name}`);
    const newest = toolOf(name, skill, version);
    byName.set(name, newest);
    listed.push(newest);
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

/** The name of the newest version. A name of the skill's own stays as it is. */
function baseName({ category, name, mcp }: Skill): string {
  return mcp?.name ?? fittingToolName(`${category}__${name}`, `${category}/${name}`);
}

/** The name of this version, whatever comes after it. */
function versionName(skill: Skill): string {
  if (skill.mcp?.name === undefined) return toolName(skill);
  return fittingToolName(`${skill.mcp.name}__${skill.version.replace('.', '_')}`, keyOf(skill));
}

function toolOf(name: string, skill: Skill, version: string): SkillTool {
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
      _meta: { 'skillwright/version_name': version },
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
