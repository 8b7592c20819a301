/**
 * Tasks that say themselves what the model does about them. The provider reads the plan and how far
 * it has come off the dialogue that it is sent, so it answers a run that is repeated as it would have
 * answered the first, and every answer bears the number of its request.
 */
import { join } from 'node:path';
import { type Body, unmarked } from './scripted-protocols.ts';
import type { Reply, Script, ScriptedRequest } from './scripted-provider.ts';

/** The skills of `test/fixtures/skills/ledger`. */
export const ledgerSkills = join(import.meta.dirname, '../fixtures/skills/ledger');

export type PlannedCall =
  /** Writes lines into the file `log`; see the skill. */
  | {
      readonly note: string;
      readonly log: string;
      readonly gate?: string;
      readonly remember?: string;
      readonly fail?: string;
    }
  | { readonly remember: string }
  /** What was remembered by an earlier turn of the same plan. */
  | { readonly forget: string }
  /** Plans carried out inside the tool. */
  | { readonly think: readonly Plan[] }
  | { readonly die: { readonly once?: string } }
  /** Any other tool, by the name that models know it by. */
  | { readonly tool: string; readonly input: unknown };

/** What the model does: in each turn these calls at once, then an answer. */
export interface Plan {
  /** Occurs once. */
  readonly id: string;
  readonly turns: readonly (readonly PlannedCall[])[];
  /** It is to answer with data, and so many of its answers are none. */
  readonly wrong?: number;
  /** The provider does not say what this one costs. */
  readonly unreported?: boolean;
}

/** How a dialogue stands with its plan. */
export interface PlanState {
  readonly plan: Plan;
  /** From 0; as many as the plan has turns when its answer is due. */
  readonly turn: number;
  /** What the tools have given so far. */
  readonly results: readonly string[];
}

/** The task of a plan, as a run is given it. */
export const taskOf = (plan: Plan): string => JSON.stringify(plan);

/** The input of `agent/run-task` that has a plan carried out. */
export function inputOf(plan: Plan): object {
  return { task: taskOf(plan), ...(plan.wrong === undefined ? {} : { schema }) };
}

const schema = { type: 'object', required: ['done'], properties: { done: { type: 'string' } } };

/** Answers by the plan; `alter` says what is different about an answer. */
export function followingPlans(
  alter: (state: PlanState, request: ScriptedRequest) => Partial<Reply> = () => ({}),
): Script {
  return (request) => {
    const state = planState(request);
    const { plan, turn } = state;
    const calls = plan.turns[turn] ?? [];
    const words = calls.length > 0 ? `${plan.id} goes on` : `${plan.id} is done`;
    const text = `${words} #${request.index}`;
    return {
      ...(calls.length === 0 && plan.wrong !== undefined
        ? dataReply({ [turn < plan.turns.length + plan.wrong ? 'undone' : 'done']: text }, request)
        : { text, toolCalls: calls.map((call) => toolCall(call, state)) }),
      usage: plan.unreported
        ? null
        : { prompt: 10_000 + request.index, completion: 1 + request.index },
      ...alter(state, request),
    };
  };
}

/** Data is an answer in chats, and in messages what a tool is called with. */
function dataReply(data: object, { tools }: ScriptedRequest): Partial<Reply> {
  if (tools.includes('json')) return { toolCalls: [{ name: 'json', input: data }] };
  return { text: JSON.stringify(data) };
}

/** The number of the request that a message answers; null when it is not whole. */
export function requestAnswered(message: {
  readonly text: string;
  readonly toolCalls: readonly { readonly id: string }[];
}): number | null {
  const mark =
    /#(\d+)(?:"\})?$/.exec(message.text) ?? /^call_(\d+)_/.exec(message.toolCalls[0]?.id ?? '');
  return mark === null ? null : Number(mark[1]);
}

/** Reads off a request which plan it is about, and how far that is. */
export function planState({ messages }: Pick<ScriptedRequest, 'messages'>): PlanState {
  // What begins otherwise complains of a wrong answer.
  const at = messages.findLastIndex((message) => userText(message)?.startsWith('{'));
  const since = messages.slice(at + 1);
  return {
    plan: JSON.parse(userText(messages[at]) ?? '') as Plan,
    turn: since.filter(({ role }) => role === 'assistant').length,
    results: since.flatMap(resultsIn).map(unmarked),
  };
}

function userText({ role, content }: Body): string | null {
  if (role !== 'user') return null;
  if (typeof content === 'string') return content;
  return content.find(({ type }: Body) => type === 'text')?.text ?? null;
}

function resultsIn({ role, content }: Body): string[] {
  if (role === 'tool') return [content];
  if (role !== 'user' || typeof content === 'string') return [];
  return content
    .filter(({ type }: Body) => type === 'tool_result')
    .map((part: Body) =>
      typeof part.content === 'string' ? part.content : (part.content?.[0]?.text ?? ''),
    );
}

function toolCall(call: PlannedCall, { results }: PlanState): { name: string; input: unknown } {
  if ('note' in call) {
    const { note: id, ...input } = call;
    return { name: 'ledger__note__v1_0', input: { id, ...input } };
  }
  if ('think' in call) {
    return { name: 'ledger__think__v1_0', input: { tasks: call.think.map(taskOf) } };
  }
  if ('tool' in call) return { name: call.tool, input: call.input };
  if ('die' in call) return { name: 'ledger__die__v1_0', input: call.die };
  if ('remember' in call) return { name: 'remember', input: { content: call.remember } };
  const memory = results
    .filter((text) => text.startsWith('{'))
    .map((text) => JSON.parse(text))
    .find(({ content }) => content === call.forget);
  return { name: 'forget', input: { id: memory?.id ?? 'unknown' } };
}

/** What an agent knows when a plan is carried out: what was remembered and not forgotten again. */
export function memoriesOf({ turns }: Plan): string[] {
  const known = new Set<string>();
  for (const call of turns.flat()) {
    if ('remember' in call && call.remember !== undefined) known.add(call.remember);
    else if ('forget' in call) known.delete(call.forget);
    else if ('think' in call) for (const one of call.think.flatMap(memoriesOf)) known.add(one);
  }
  return [...known];
}
