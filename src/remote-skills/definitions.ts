/** What is pinned of a tool, and the skill that it is. */
import { isObject } from '../kernel/json.ts';
import type { JsonSchema } from '../kernel/json-schema.ts';
import type { SkillFacts } from '../skills/fields.ts';
import type { RemoteTool } from './remote-kind.ts';

/** What the source told of a tool when its version was made. */
export type RemoteDefinition = Omit<RemoteTool, 'tool' | 'skillName'>;

export function definitionOf({
  tool: _,
  skillName: __,
  ...definition
}: RemoteTool): RemoteDefinition {
  return definition;
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
  const { title, description, input, output } = definition;
  return {
    ...{ category, name, version, timeoutMs },
    displayName: shownText(title ?? '').slice(0, displayNameCharsMax) || tool,
    description: shownText(description) || `The tool ${tool}.`,
    parameters: shownSchema(input),
    output: output === null ? untoldOutput : shownSchema(output),
    mcp: skill.hasContent && output === null ? { content: true } : null,
    maxAttempts: isIdempotent ? attemptsOfIdempotent : 1,
  };
}

const untoldOutput = {
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

/** Without invisible characters, in which instructions for models may hide. */
export function shownText(text: string): string {
  return withoutInvisible(text).trim();
}

function withoutInvisible(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u{E0000}-\u{E0FFF}]/gu, '');
}
