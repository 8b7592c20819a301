/**
 * The tools of a model: the skills that both its agent's patterns and the caller's key allow, the agent's
 * memory, and the files of a SKILL.md skill. Lists the tools and parses calls; runs none. Calls are treated
 * as hostile, because a model can name any tool and send any arguments.
 */
import { createHash } from 'node:crypto';
import { hasScopes } from '../kernel/caller.ts';
import { isObject } from '../kernel/json.ts';
import { cleanText, jsonTextFault } from '../kernel/text.ts';
import { isMemoryVerb, type MemoryVerb, memoryTools } from '../memories/memory-verbs.ts';
import type { ToolCall, ToolOffer } from '../models/model.ts';
import { type Skill, skillKey } from '../skills/registry.ts';

/** Providers accept 128 tools; some are the platform's own. */
const skillToolsMax = 100;
/** UTF-8 bytes of a call's arguments. */
const argumentsBytesMax = 262_144;
/** Characters of a tool's description. */
const descriptionMax = 1_024;
/** Characters of a tool's name that providers accept. */
const nameMax = 64;
/** Characters of an error message for the model. */
const complaintMax = 2_000;

/** A parsed call. */
export type ToolUse =
  /** `input` is JSON text that the skill's schema allows. */
  | {
      readonly kind: 'skill';
      readonly skill: string;
      readonly input: string;
      /** Whether a person has to approve the call. */
      readonly needsApproval: boolean;
    }
  | { readonly kind: 'memory'; readonly verb: MemoryVerb; readonly payload: unknown }
  | { readonly kind: 'file'; readonly path: unknown; readonly offset: unknown }
  /** The call is invalid; the message is for the model. */
  | { readonly kind: 'refused'; readonly message: string };

export interface ToolBox {
  readonly offers: readonly ToolOffer[];
  /** The number of allowed skills beyond the maximum. */
  readonly leftOut: number;
  /** The name of a tool in steps and messages: for a skill its `category/version/name`. */
  nameOf(call: ToolCall): string;
  read(call: ToolCall): ToolUse;
}

interface SkillTool {
  readonly skill: Skill;
  /** Whether the input is the field `input` of an object, because providers would refuse its schema. */
  readonly isWrapped: boolean;
  readonly needsApproval: boolean;
}

/** The tools that a request asks for. */
export interface WantedTools {
  /** As in `GenerateOptions`. */
  readonly tools: boolean | readonly string[];
  /** Whether there are files to read. */
  readonly files: boolean;
}

/** Patterns of skills that an agent has. */
export interface AgentPatterns {
  /** Its model may call them. */
  readonly skills: readonly string[];
  /** A person has to approve their calls. */
  readonly approvals: readonly string[];
}

/** `skills` are the active ones; `patterns` the agent's; `scopes` those of the caller's key. */
export function toolBox(
  skills: readonly Skill[],
  patterns: AgentPatterns,
  scopes: readonly string[],
  { tools, files }: WantedTools,
): ToolBox {
  const wanted = tools === true ? ['*'] : tools === false ? [] : tools;
  const allowed = skills.filter(
    (skill) =>
      matchesAny(skill, patterns.skills) &&
      matchesAny(skill, wanted) &&
      hasScopes(scopes, skill.requiredScopes),
  );
  const byName = new Map<string, SkillTool>();
  for (const skill of allowed.slice(0, skillToolsMax)) {
    const needsApproval = matchesAny(skill, patterns.approvals);
    byName.set(toolName(skill), { skill, isWrapped: !isOfferedAsIs(skill), needsApproval });
  }
  const hasMemory = tools !== false;
  const offers = [
    ...[...byName].map(([name, tool]) => offerOf(name, tool)),
    ...(hasMemory ? memoryTools : []),
    ...(files ? [fileOffer] : []),
  ];
  return {
    offers,
    leftOut: Math.max(0, allowed.length - skillToolsMax),

    nameOf({ name }) {
      const skill = byName.get(name)?.skill;
      return skill === undefined ? name.slice(0, 200) : keyOf(skill);
    },

    read(call) {
      const tool = byName.get(call.name);
      const verb = hasMemory && isMemoryVerb(call.name) ? call.name : undefined;
      const isFile = files && call.name === fileOffer.name;
      if (tool === undefined && verb === undefined && !isFile) {
        return refused(unknownTool(call.name, offers));
      }
      const read = readArguments(call.input);
      if ('fault' in read) return refused(read.fault);
      if (tool !== undefined) return useOfSkill(tool, read.value);
      if (verb === undefined) {
        return { kind: 'file', path: read.value['path'], offset: read.value['offset'] };
      }
      const payload = verb === 'forget' ? read.value['id'] : read.value;
      return { kind: 'memory', verb, payload };
    },
  };
}

/** `*`, `text/*`, `text/v1.0`, `text/v1.0/*` or `text/v1.0/summarize` (docs/decisions/agents.md). */
function matchesAny(skill: Skill, patterns: readonly string[]): boolean {
  const own = [skill.category, skill.version, skill.name];
  return patterns.some((pattern) => {
    const parts = pattern.split('/');
    return parts.every((part, i) => part === '*' || part === own[i]);
  });
}

const keyOf = ({ category, version, name }: Skill) => skillKey(category, version, name);

/** A name that providers accept: stable, and unique to the skill. */
function toolName(skill: Skill): string {
  const name = `${skill.category}__${skill.name}__${skill.version.replace('.', '_')}`;
  if (name.length <= nameMax) return name;
  const mark = createHash('sha256').update(keyOf(skill)).digest('hex').slice(0, 10);
  return `${name.slice(0, nameMax - mark.length - 1)}_${mark}`;
}

/** Keywords that providers refuse at the root of a tool's schema. */
const notAtRoot = ['$ref', 'allOf', 'anyOf', 'const', 'enum', 'not', 'oneOf'];

function isOfferedAsIs({ parameters }: Skill): boolean {
  const isObject = parameters['type'] === 'object' || 'properties' in parameters;
  return isObject && !notAtRoot.some((keyword) => keyword in parameters);
}

function offerOf(name: string, { skill, isWrapped }: SkillTool): ToolOffer {
  const { $schema: _, ...schema } = skill.parameters;
  return {
    name,
    description: skill.description.slice(0, descriptionMax).toWellFormed(),
    parameters: isWrapped
      ? { type: 'object', properties: { input: nestedSchema(schema) }, required: ['input'] }
      : { ...schema, type: 'object' },
  };
}

/** A schema moved to the property `input`, with its references moved along. */
function nestedSchema(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // A schema with an `$id` is the root of its own references in any place.
  if ('$id' in schema) return schema;
  const json = JSON.stringify(schema, (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' && /^#(?:\/|$)/.test(value)
      ? `#/properties/input${value.slice(1)}`
      : value,
  );
  return JSON.parse(json) as Record<string, unknown>;
}

function useOfSkill(
  { skill, isWrapped, needsApproval }: SkillTool,
  given: Record<string, unknown>,
): ToolUse {
  const input = isWrapped ? given['input'] : given;
  const issues = input === undefined ? [missingInput] : skill.inputIssues(input);
  if (issues !== null) {
    const list = issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');
    return refused(`The arguments break the tool's schema: ${list}`);
  }
  return { kind: 'skill', skill: keyOf(skill), input: JSON.stringify(input), needsApproval };
}

const missingInput = { field: 'input', issue: 'is required' };

/** Parses the arguments of a call, which have to be a JSON object that every database can store. */
function readArguments(
  input: string,
): { readonly value: Record<string, unknown> } | { readonly fault: string } {
  if (Buffer.byteLength(input) > argumentsBytesMax) {
    return { fault: `The arguments are too long: at most ${argumentsBytesMax / 1024} KiB` };
  }
  const json = input.trim() === '' ? '{}' : input;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return { fault: `The arguments are not valid JSON: ${(error as Error).message}` };
  }
  if (!isObject(value)) return { fault: 'The arguments must be a JSON object' };
  // Checks the original text: serializing it again could fail on its depth, and hides too large numbers.
  const fault = jsonTextFault(json);
  if (fault !== null) return { fault: `The JSON of the arguments ${fault}` };
  return { value };
}

function unknownTool(name: string, offers: readonly ToolOffer[]): string {
  const names = offers.map((offer) => offer.name);
  const there = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}.`;
  return `There is no tool ${JSON.stringify(name.slice(0, 200))}. ${there}`;
}

/** A refusal. The message may quote the model, so it is cut and cleaned. */
function refused(message: string): ToolUse {
  const text = cleanText(message.slice(0, complaintMax));
  return { kind: 'refused', message: text };
}

const fileOffer: ToolOffer = {
  name: 'read_file',
  description: "Reads a file of this skill's folder.",
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the folder.' },
      offset: { type: 'integer', minimum: 0, description: 'Bytes to pass over.' },
    },
    required: ['path'],
    additionalProperties: false,
  },
};
