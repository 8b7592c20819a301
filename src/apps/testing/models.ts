/** The model of a scripted run: takes its turns from the script, and calls skills as tools between them. */

import type { Generated, GenerateRequest } from '../../core/skills/definition.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import type { RunChild } from './answers.ts';
import { failureOf, quoted, type Script, times } from './script.ts';
import { type ModelAnswer, ScriptError, type ScriptedToolCall, type ToolResult } from './types.ts';

/** As on a platform whose AGENT_TURNS_MAX is not set. */
const turnsDefault = 30;

interface ModelDeps {
  readonly script: Script;
  /** Executes what stands in for a skill. */
  readonly tool: RunChild;
}

/** The answer to a request to the model. Throws the error that the skill gets. */
export async function answerModel(
  { script, tool }: ModelDeps,
  request: GenerateRequest,
): Promise<Generated> {
  const turnsMax = Math.min(request.maxTurns ?? turnsDefault, turnsDefault);
  let results: readonly ToolResult[] = [];
  let tokens: number | null = null;
  const costs: (number | undefined)[] = [];
  for (let turns = 1; turns <= turnsMax; turns++) {
    const answer = await nextAnswer(script, request, results);
    if (answer instanceof Error) throw answer;
    const given = typeof answer === 'string' ? { text: answer } : answer;
    if (given.totalTokens !== undefined) tokens = (tokens ?? 0) + given.totalTokens;
    costs.push(given.costUsd);
    if (!('toolCalls' in given)) return generated(given, turns, tokens, costs);
    const calls = given.toolCalls.map((call) => callTool({ script, tool }, request, call));
    results = await Promise.all(calls);
    script.toolCalls.push(...results);
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
  const what =
    results.length === 0
      ? `ctx.generate was called ${times(nth)}, and the test has no answer of the model for that.`
      : `The model has got the results of ${results.map(({ skill }) => skill).join(', ')}, and the test has no answer of it to them.`;
  throw new ScriptError(
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
  { tool }: ModelDeps,
  { tools = false }: GenerateRequest,
  { skill, input = {} }: ScriptedToolCall,
): Promise<ToolResult> {
  if (!isAllowed(skill, tools)) {
    const message = `there is no tool ${skill}: the request of the skill does not allow it`;
    return { skill, input, error: { code: 'invalid_input', message } };
  }
  try {
    const { output } = await tool(skill, input);
    return { skill, input, output };
  } catch (error) {
    if (error instanceof ScriptError) throw error;
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
