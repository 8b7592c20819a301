/** How a skill is offered to a model: the name of its tool, and its schema in a form that providers accept. Pure. */
import { createHash } from 'node:crypto';
import type { ToolOffer } from '../../adapters/models/model.ts';
import { isObject } from '../../kernel/json.ts';
import { type Skill, skillKey } from '../skills/registry.ts';

/** Characters of a tool's description. */
const descriptionMax = 1_024;
/** Characters of a tool's name that providers accept. */
const nameMax = 64;

/** `*`, `text/*`, `text/v1.0`, `text/v1.0/*` or `text/v1.0/summarize` (docs/decisions/agents.md). */
export function matchesAny(skill: Skill, patterns: readonly string[]): boolean {
  const own = [skill.category, skill.version, skill.name];
  return patterns.some((pattern) => {
    const parts = pattern.split('/');
    return parts.every((part, i) => part === '*' || part === own[i]);
  });
}

export const keyOf = ({ category, version, name }: Skill) => skillKey(category, version, name);

/** A name that providers accept: stable, and unique to the skill. */
export function toolName(skill: Skill): string {
  const name = `${skill.category}__${skill.name}__${skill.version.replace('.', '_')}`;
  return fittingToolName(name, keyOf(skill));
}

/** The name of the tool that is an agent. No skill has such a name, because a skill's name ends with its version. */
export function agentToolName(id: string): string {
  return fittingToolName(`agent__${id}`, id);
}

/** The name, cut to what providers accept, with a digest of `id` at its end. */
export function fittingToolName(name: string, id: string): string {
  return name.length <= nameMax ? name : markedToolName(name, id);
}

/** The name with a digest of `id` at its end, for one that is too long or that another tool has. */
export function markedToolName(name: string, id: string): string {
  const mark = createHash('sha256').update(id).digest('hex').slice(0, 10);
  return `${name.slice(0, nameMax - mark.length - 1)}_${mark}`;
}

/** Keywords that providers refuse at the root of a tool's schema. */
const notAtRoot = ['$ref', 'allOf', 'anyOf', 'const', 'enum', 'not', 'oneOf'];

export function isOfferedAsIs({ parameters }: Skill): boolean {
  const isObject = parameters['type'] === 'object' || 'properties' in parameters;
  return isObject && !notAtRoot.some((keyword) => keyword in parameters);
}

/**
 * The parameters that a model is offered. Of a skill that takes a task they have no `files`: the platform fetches urls
 * in these, so a misled model could send data out.
 */
export function offeredParameters({ parameters, taskField }: Skill): Skill['parameters'] {
  const { properties } = parameters;
  if (taskField === null || !isObject(properties) || !('files' in properties)) return parameters;
  const { files: _, ...others } = properties;
  return { ...parameters, properties: others };
}

export function offerOf(
  name: string,
  description: string,
  skill: Skill,
  isWrapped: boolean,
): ToolOffer {
  const { $schema: _, ...schema } = offeredParameters(skill);
  return {
    name,
    description: description.slice(0, descriptionMax).toWellFormed(),
    parameters: isWrapped
      ? { type: 'object', properties: { input: nestedSchema(schema) }, required: ['input'] }
      : { ...schema, type: 'object' },
  };
}

/** Nests a schema under the property `input` and rewrites its references. */
function nestedSchema(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // References in a schema with `$id` are relative to that schema, so they stay.
  if ('$id' in schema) return schema;
  const json = JSON.stringify(schema, (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' && /^#(?:\/|$)/.test(value)
      ? `#/properties/input${value.slice(1)}`
      : value,
  );
  return JSON.parse(json) as Record<string, unknown>;
}
