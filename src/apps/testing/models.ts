/** The model of a scripted run: takes its turns from the script, and calls skills as tools between them. */

import type { Generated, GenerateRequest } from '../../core/skills/definition.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { failureOf, quoted, type Script, times } from './script.ts';
import { type ModelAnswer, ScriptError, type ScriptedToolCall, type ToolResult } from './types.ts';

/** As on a platform whose AGENT_TURNS_MAX is not set. */
const turnsDefault = 30;

/** Executes what stands in for a skill. Rejects with its error; `path` names the call within the request. */
export type CallTool = (skill: string, input: unknown, path: string) => Promise<unknown>;

interface ModelDeps {
  readonly script: Script;
  readonly tool: CallTool;
}

/** The run is unloaded, or has to stop, so the request does not end. */
export class StoppedError extends Error {}

/** The turns of a request so far: the run may be unloaded while a tool waits. */
export interface Dialogue {
  readonly turns: { readonly answer: ModelAnswer; readonly results: (ToolResult | undefined)[] }[];
}

/** The answer to a request to the model. Throws the error that the skill gets. */
export async function answerModel(
  { script, tool }: ModelDeps,
  request: GenerateRequest,
  { turns }: Dialogue,
): Promise<Generated> {
  const turnsMax = Math.min(request.maxTurns ?? turnsDefault, turnsDefault);
  let last: readonly ToolResult[] = [];
  let tokens: number | null = null;
  const costs: (number | undefined)[] = [];
  for (let turn = 1; turn <= turnsMax; turn++) {
    const known = turns[turn - 1];
    const { answer, results } = known ?? {
      answer: await nextAnswer(script, request, last),
      results: [],
    };
    if (known === undefined) turns.push({ answer, results });
    if (answer instanceof Error) throw answer;
    const given = typeof answer === 'string' ? { text: answer } : answer;
    if (given.totalTokens !== undefined) tokens = (tokens ?? 0) + given.totalTokens;
    costs.push(given.costUsd);
    if (!('toolCalls' in given)) return generated(given, turn, tokens, costs);
    const isKnown = results.length === given.toolCalls.length && !results.includes(undefined);
    last = await Promise.all(
      given.toolCalls.map(async (call, i) => {
        results[i] ??= await callTool(tool, request, call, `${turn}.${i}`);
        return results[i];
      }),
    );
    if (!isKnown) script.toolCalls.push(...last);
  }
  throw permanentError(`The model did not come to an answer within ${turnsMax} turns`);
}

async function nextAnswer(
  script: Script,
  request: GenerateRequest,
  results: readonly ToolResult[],
): Promise<ModelAnswer> {
  const { models } = script.options;
  script.requests.push(request);
  const nth = script.requests.length;
  const answer =
    typeof models === 'function' ? await models(request, nth, results) : models?.[nth - 1];
  if (answer !== undefined) return answer;
  return script.answer(() => {
    throw missingAnswer(request, nth, results);
  });
}

function missingAnswer(
  request: GenerateRequest,
  nth: number,
  results: readonly ToolResult[],
): ScriptError {
  const what =
    results.length === 0
      ? `ctx.generate was called ${times(nth)}, and the test has no answer of the model for that.`
      : `The model has got the results of ${results.map(({ skill }) => skill).join(', ')}, and the test has no answer of it to them.`;
  return new ScriptError(
    `${what} The prompt: ${quoted(request.prompt)}. Give an answer for each turn of the model, in their order: { models: ['…'] }`,
  );
}

function generated(
  given: Exclude<ModelAnswer, string | Error | { toolCalls: unknown }>,
  turns: number,
  tokens: number | null,
  costs: readonly (number | undefined)[],
): Generated {
  const known = costs.filter((cost) => cost !== undefined);
  const cost = {
    cost_usd: known.length === 0 ? null : known.reduce((sum, usd) => sum + usd, 0),
    cost_is_partial: known.length < costs.length,
  };
  return {
    text: 'text' in given ? given.text : JSON.stringify(given.output),
    isCut: 'isCut' in given && given.isCut === true,
    turns,
    usage: { prompt_tokens: null, completion_tokens: null, total_tokens: tokens, ...cost },
  };
}

/** A failure becomes the tool's result for the model. */
async function callTool(
  tool: CallTool,
  { tools = false }: GenerateRequest,
  { skill, input = {} }: ScriptedToolCall,
  path: string,
): Promise<ToolResult> {
  if (!isAllowed(skill, tools)) {
    const message = `there is no tool ${skill}: the request of the skill does not allow it`;
    return { skill, input, error: { code: 'invalid_input', message } };
  }
  try {
    return { skill, input, output: await tool(skill, input, path) };
  } catch (error) {
    if (error instanceof ScriptError || error instanceof StoppedError) throw error;
    const { code, message } = failureOf(error);
    return { skill, input, error: { code, message } };
  }
}

/** As in src/core/thinking/tools.ts: `*`, `text/*`, `text/v1.0` or `text/v1.0/summarize`. */
function isAllowed(skill: string, tools: boolean | readonly string[]): boolean {
  if (typeof tools === 'boolean') return tools;
  const own = skill.split('/');
  return tools.some((pattern) =>
    pattern.split('/').every((part, i) => part === '*' || part === own[i]),
  );
}
