/**
 * The tools of a model: the skills that both its agent's patterns and the caller's key allow, the agent's
 * memory, the files of a SKILL.md skill, and the results of earlier calls. If there are many skills, the model gets a
 * search tool and is offered the skills that it finds. Lists the tools and parses calls; runs none. Calls are
 * untrusted: a model can name any tool and send any arguments.
 */

import type { DialogueMessage, ToolCall, ToolOffer } from '../../adapters/models/model.ts';
import { hasScopes } from '../../kernel/caller.ts';
import { isId } from '../../kernel/ids.ts';
import { cleanText } from '../../kernel/text.ts';
import { describeAgent, taskSkill } from '../agents/called-agents.ts';
import { type NumberedRule, numberedRules, type ToolRule } from '../agents/tool-rules.ts';
import { filesOfInput } from '../files/references.ts';
import {
  isMemoryVerb,
  type MemoryRights,
  type MemoryVerb,
  memoryToolsIn,
} from '../memories/memory-verbs.ts';
import { type Skill, skillKey } from '../skills/registry.ts';
import {
  fileOffer,
  findDefault,
  findMax,
  findOffer,
  isFindTool,
  readDefault,
  readMax,
  resultOffer,
} from './own-tools.ts';
import type { CalledAgent } from './run-agent.ts';
import { readArguments } from './tool-arguments.ts';
import {
  agentToolName,
  isOfferedAsIs,
  keyOf,
  matchesAny,
  offeredParameters,
  offerOf,
  toolName,
} from './tool-offers.ts';
import {
  type Findable,
  foundTools,
  type NearestTools,
  searchTools,
  toolsIn,
} from './tool-search.ts';

/** With more skills than this, the model gets a search tool instead of all skills. */
const offeredMax = 40;
/** Found tools that are offered, the most recent ones; providers accept 128 tools. */
const foundMax = 100;
/** Characters of an error message for the model. */
const complaintMax = 2_000;

/** A skill to run. */
export interface SkillUse {
  /** `category/version/name`. */
  readonly skill: string;
  /** JSON text that the skill's schema allows. */
  readonly input: string;
  /** Whether a person has to approve the call, where no rule decides otherwise. */
  readonly needsApproval: boolean;
  /** The rules that may decide about the call, in order. */
  readonly rules: readonly NumberedRule[];
}

/** A parsed call. */
export type ToolUse =
  | ({ readonly kind: 'skill' } & SkillUse)
  /** A task for another agent: the input of the skill that gives it one. */
  | ({ readonly kind: 'agent'; readonly agent: string } & SkillUse)
  | { readonly kind: 'memory'; readonly verb: MemoryVerb; readonly payload: unknown }
  | { readonly kind: 'file'; readonly path: unknown; readonly offset: unknown }
  /** A part of the result of an earlier call, in characters. */
  | {
      readonly kind: 'result';
      readonly callId: string;
      readonly offset: number;
      readonly length: number;
    }
  /** A search for tools: what they should do, and how many to list. */
  | { readonly kind: 'find'; readonly query: string; readonly limit: number }
  /** The call is invalid; the message is for the model. */
  | { readonly kind: 'refused'; readonly message: string };

interface SkillTool extends Findable {
  readonly skill: Skill;
  /** The agent that gets the task when this tool is an agent; else null. */
  readonly agent: string | null;
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

/** What an agent's model may call. */
export interface AgentRights {
  /** Patterns of skills. */
  readonly skills: readonly string[];
  /** Agents that it may give tasks to. */
  readonly agents: readonly CalledAgent[];
  /** What it may do with the memories of the agent and of the run's user. */
  readonly memory: MemoryRights;
  /** The most bytes of the profile of the run's user; null or left out where it keeps none. */
  readonly profileBytes?: number | null;
  /** Patterns of skills whose calls a person has to approve. */
  readonly approvals: readonly string[];
  readonly rules: readonly ToolRule[];
}

/** The tools of one request to a model. */
export class ToolBox {
  /** The tools offered at the start. */
  readonly offers: readonly ToolOffer[];
  readonly #rules: readonly NumberedRule[];
  readonly #allowed: readonly SkillTool[];
  readonly #byName: ReadonlyMap<string, SkillTool>;
  /** Whether there are so many tools that the model gets those that it finds. */
  readonly #isLarge: boolean;
  /** Found tools, and the offers with these. */
  #found: readonly string[] = [];
  #offersWithFound: readonly ToolOffer[];

  /** `skills` are the active ones; `rights` the agent's; `scopes` those of the caller's key. */
  constructor(
    skills: readonly Skill[],
    rights: AgentRights,
    scopes: readonly string[],
    { tools, files }: WantedTools,
  ) {
    this.#rules = numberedRules(rights.rules);
    const wanted = tools === true ? ['*'] : tools === false ? [] : tools;
    const usable = skills.filter(
      (skill) => matchesAny(skill, wanted) && hasScopes(scopes, skill.requiredScopes),
    );
    this.#allowed = [
      ...usable
        .filter((skill) => matchesAny(skill, rights.skills))
        .map((skill) => skillTool(skill, rights)),
      ...agentTools(usable.find(givesTasks), rights),
    ];
    this.#byName = new Map(this.#allowed.map((tool) => [tool.name, tool]));
    this.#isLarge = this.#byName.size > offeredMax;
    const offers = [
      ...(this.#isLarge
        ? [findOffer(categoriesOf(this.#allowed))]
        : this.#allowed.map(offerOfTool)),
      ...(tools === false ? [] : memoryToolsIn(rights.memory, rights.profileBytes)),
      ...(files ? [fileOffer] : []),
    ];
    this.offers = offers.length === 0 ? [] : [...offers, resultOffer];
    this.#offersWithFound = this.offers;
  }

  /**
   * The tools offered after these messages; the same array if they have found nothing new. Those that the dialogue has
   * found or called come last, so that the prompt's prefix stays the same. `earlier` were found before these messages.
   */
  offersAfter(
    messages: readonly DialogueMessage[],
    earlier: readonly string[] = [],
  ): readonly ToolOffer[] {
    if (!this.#isLarge) return this.offers;
    const known = [...new Set([...earlier, ...toolsIn(messages)])];
    const found = known.filter((name) => this.#byName.has(name)).slice(-foundMax);
    const before = this.#found;
    if (found.length !== before.length || found.some((name, i) => name !== before[i])) {
      const added = found.flatMap((name) => this.#byName.get(name) ?? []);
      this.#found = found;
      this.#offersWithFound = [...this.offers, ...added.map(offerOfTool)];
    }
    return this.#offersWithFound;
  }

  /** The name of a tool in steps and messages: for a skill its `category/version/name`. */
  nameOf({ name }: ToolCall): string {
    const tool = this.#byName.get(name);
    if (tool === undefined) return name.slice(0, 200);
    return tool.agent === null ? keyOf(tool.skill) : `agent/${tool.agent}`;
  }

  read(call: ToolCall): ToolUse {
    const tool = this.#byName.get(call.name);
    if (tool === undefined && !this.offers.some(({ name }) => name === call.name)) {
      return refused(unknownTool(call.name, this.offers, this.#isLarge));
    }
    const read = readArguments(call.input);
    if ('fault' in read) return refused(read.fault);
    return tool === undefined
      ? useOfOwn(call.name, read.value)
      : useOfSkill(tool, read.value, this.#rules);
  }

  /** The tools that a query finds, as shown to the model; null for none. */
  async find(
    query: string,
    limit: number,
    nearest: NearestTools | null = null,
  ): Promise<object | null> {
    const found = await searchTools(this.#allowed, query, limit, nearest);
    return found.length === 0 ? null : foundTools(found);
  }
}

const givesTasks = (skill: Skill) => keyOf(skill) === skillKey(...taskSkill);

/** The agents as tools: each takes the input of the skill that gives an agent a task. */
function agentTools(skill: Skill | undefined, rights: AgentRights): SkillTool[] {
  if (skill === undefined) return [];
  const tool = skillTool(skill, rights);
  return rights.agents.map((agent) => ({
    ...tool,
    name: agentToolName(agent.id),
    description: describeAgent(agent),
    source: agent,
    agent: agent.id,
  }));
}

function skillTool(skill: Skill, { approvals }: AgentRights): SkillTool {
  return {
    agent: null,
    name: toolName(skill),
    description: skill.description,
    fields: Object.keys((offeredParameters(skill)['properties'] as object | undefined) ?? {}),
    source: skill,
    skill,
    isWrapped: !isOfferedAsIs(skill),
    needsApproval: matchesAny(skill, approvals),
  };
}

const offerOfTool = ({ name, description, skill, isWrapped }: SkillTool) =>
  offerOf(name, description, skill, isWrapped);

function categoriesOf(tools: readonly SkillTool[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { skill, agent } of tools) {
    const category = agent === null ? skill.category : 'agents';
    counts.set(category, 1 + (counts.get(category) ?? 0));
  }
  return counts;
}

/** A call of one of the platform's own tools. */
function useOfOwn(name: string, given: Record<string, unknown>): ToolUse {
  if (isMemoryVerb(name)) {
    // The platform alone says of which message a memory was formed.
    const { source: _, ...own } = given;
    return { kind: 'memory', verb: name, payload: name === 'forget' ? given['id'] : own };
  }
  if (name === resultOffer.name) return useOfResult(given);
  if (isFindTool(name)) return useOfFind(given);
  return { kind: 'file', path: given['path'], offset: given['offset'] };
}

function useOfResult({ call_id: callId, offset, length }: Record<string, unknown>): ToolUse {
  if (typeof callId !== 'string') return refused('call_id must be the id of an earlier call');
  return {
    kind: 'result',
    callId,
    offset: countOr(0, offset, Number.MAX_SAFE_INTEGER),
    length: Math.max(1, countOr(readDefault, length, readMax)),
  };
}

function useOfFind({ query, limit }: Record<string, unknown>): ToolUse {
  if (typeof query !== 'string' || query.trim() === '') {
    return refused('query must say what the tool is to do');
  }
  return { kind: 'find', query, limit: Math.max(1, countOr(findDefault, limit, findMax)) };
}

/** The model's count, capped at `most`; else `fallback`. */
function countOr(fallback: number, value: unknown, most: number): number {
  return typeof value === 'number' && value >= 0 ? Math.min(Math.floor(value), most) : fallback;
}

function useOfSkill(
  { skill, agent, isWrapped, needsApproval }: SkillTool,
  given: Record<string, unknown>,
  allRules: readonly NumberedRule[],
): ToolUse {
  const input = isWrapped ? given['input'] : given;
  const issues = input === undefined ? [missingInput] : skill.input.issuesOf(input);
  if (issues !== null) {
    const list = issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');
    return refused(`The arguments break the tool's schema: ${list}`);
  }
  if (filesOfInput(input, skill.taskField).some((name) => !isId(name))) return refused(noUrls);
  const isFor = (pattern: string) =>
    matchesAny(skill, [pattern]) || (agent !== null && pattern === `agent/${agent}`);
  const rules = allRules.filter(({ tools }) => isFor(tools));
  const use = { skill: keyOf(skill), input: JSON.stringify(input), needsApproval, rules };
  return agent === null ? { kind: 'skill', ...use } : { kind: 'agent', agent, ...use };
}

const noUrls = 'files of a task that a model gives cannot be urls: name the address in the task';
const missingInput = { field: 'input', issue: 'is required' };

function unknownTool(name: string, offers: readonly ToolOffer[], isLarge: boolean): string {
  const names = offers.map((offer) => offer.name);
  const more = isLarge ? ', and those that find_tools finds' : '';
  const there = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}${more}.`;
  return `There is no tool ${JSON.stringify(name.slice(0, 200))}. ${there}`;
}

/** A refusal. The message may quote the model, so it is cut and cleaned. */
function refused(message: string): ToolUse {
  return { kind: 'refused', message: cleanText(message.slice(0, complaintMax)) };
}
