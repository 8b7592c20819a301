/** The pinned definition of a tool, and its skill. */

import type { SkillFacts } from '../../core/skills/fields.ts';
import { isObject } from '../../kernel/json.ts';
import type { JsonSchema } from '../../kernel/json-schema.ts';
import type { RemoteTool } from './remote-kind.ts';

/** The definition that the source gave of a tool when its version was made. */
export type RemoteDefinition = Omit<RemoteTool, 'tool' | 'skillName'>;

export function definitionOf({
  tool: _,
  skillName: __,
  ...definition
}: RemoteTool): RemoteDefinition {
  return definition;
}

/** The definition of a stored version. */
export function definitionIn(row: { readonly definition: string }): RemoteDefinition {
  return JSON.parse(row.definition) as RemoteDefinition;
}

const displayNameCharsMax = 200;
/** Attempts of a job whose tool may be called twice. */
const attemptsOfIdempotent = 3;

/** A version of a remote skill, with what the operator has set for its source. */
export interface RemoteSkill {
  readonly category: string;
  readonly name: string;
  readonly version: string;
  readonly tool: string;
  readonly definition: RemoteDefinition;
  readonly timeoutMs: number;
  readonly isIdempotent: boolean;
  /** Whether its output may be blocks of content, as the Model Context Protocol has them. */
  readonly hasContent: boolean;
}

/** The skill, as the registry has it. */
export function factsOf(skill: RemoteSkill): SkillFacts {
  const { category, name, version, tool, definition, timeoutMs, isIdempotent } = skill;
  const { title, description, input } = definition;
  return {
    category,
    name,
    version,
    timeoutMs,
    displayName: shownText(title ?? '').slice(0, displayNameCharsMax) || tool,
    description: shownText(description) || `The tool ${tool}.`,
    parameters: shownSchema(input),
    ...outputOf(skill),
    maxAttempts: isIdempotent ? attemptsOfIdempotent : 1,
  };
}

/** The schema of the output, and how MCP clients get it. */
function outputOf({ definition: { output }, hasContent }: RemoteSkill) {
  if (output === null)
    return { output: unspecifiedOutput, mcp: hasContent ? { content: true } : null };
  const shown = shownSchema(output);
  if (!hasContent || !mayHaveBeside(output)) return { output: shown, mcp: null };
  const properties = { ...(shown['properties'] as object), [besideField]: besideSchema };
  return { output: { ...shown, properties }, mcp: { content: 'beside' as const } };
}

/** The field of an output for blocks beside the structured content, where the tool has no such field of its own. */
export const besideField = '_content';

export function mayHaveBeside({ type, properties = {} }: JsonSchema): boolean {
  return type === 'object' && isObject(properties) && !Object.hasOwn(properties, besideField);
}

const besideSchema = {
  description: 'Blocks of content that the tool returned beside it, such as images.',
  type: 'array',
  items: { type: 'object' },
};

const unspecifiedOutput = {
  description: 'What the tool returned: its structured content, or {content}.',
};

/** A schema whose texts have no invisible characters: descriptions as well as names, values and examples. */
export function shownSchema(schema: JsonSchema): JsonSchema {
  return shownValue(schema) as JsonSchema;
}

function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return withoutInvisible(value);
  if (Array.isArray(value)) return value.map(shownValue);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [withoutInvisible(name), shownValue(one)]),
  );
}

/** A form whose labels have no invisible characters; values that an answer has to match stay as they are. */
export function shownForm(form: unknown): unknown {
  if (Array.isArray(form)) return form.map(shownForm);
  if (!isObject(form)) return form;
  return Object.fromEntries(
    Object.entries(form).map(([name, one]) => [
      name,
      labels.has(name) && !isObject(one) ? shownValue(one) : shownForm(one),
    ]),
  );
}

/** Of forms. A field may have such a name, too: that one is an object. */
const labels: ReadonlySet<string> = new Set(['title', 'description', 'enumNames']);

/** Removes invisible characters, which may hide instructions for models. */
export function shownText(text: string): string {
  return withoutInvisible(text).trim();
}

export function withoutInvisible(text: string): string {
  return text.replace(
    /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u{E0000}-\u{E0FFF}]|[\ufe00-\ufe0f]{2,}/gu,
    '',
  );
}

/**
 * Characters that hide or reorder text: tags, repeated variation selectors, zero-width spaces and operators, and
 * direction overrides. An output is data, so joiners and control characters stay.
 */
const hiding =
  /(?:[\u200b\u2060-\u2064\u206a-\u206f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\u{E0000}-\u{E0FFF}]|[\ufe00-\ufe0f]{2,})+/gu;

/** Removes hiding characters from the JSON of an output; returns how many there were. */
export function withoutHiding(json: string): { readonly json: string; readonly removed: number } {
  let removed = 0;
  const kept = json.replace(hiding, (hidden) => {
    removed += [...hidden].length;
    return '';
  });
  return { json: kept, removed };
}
