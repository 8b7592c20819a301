/**
 * `ctx.generate` in the child: hands the request to the parent, and judges the answer by the request's
 * schema here, where a schema from outside can hold up nobody but the runs of this child. An answer
 * that is wrong goes back with what is wrong about it.
 */

import { createHash } from 'node:crypto';
import { compileSchema, type Validate } from '../kernel/json-schema.ts';
import { refusal } from '../kernel/refusal.ts';
import { SchemaError } from '../kernel/schema-rules.ts';
import { canonicalJson, cleanText, jsonTextFault } from '../kernel/text.ts';
import type { Generated, GenerateRequest } from '../skills/definition.ts';

/** Answers that may be wrong before the request has failed. */
const wrongAnswersMax = 3;
/** Characters of what is said about a wrong answer. */
const complaintMax = 2_000;

/** Asks the parent, as `ask` in run-context. */
export type AskGenerate = (payload: unknown) => Promise<unknown>;

/** The function of one run; the parts of the run share it, for it counts what was asked. */
export function createGenerate(ask: AskGenerate): (request: GenerateRequest) => Promise<Generated> {
  const counts = new Map<string, number>();

  return async (request) => {
    const key = keyOf(request);
    const nth = (counts.get(key) ?? 0) + 1;
    counts.set(key, nth);
    const corrections: string[] = [];
    const validate = validatorOf(request?.schema);
    for (;;) {
      const answer = (await ask({ request, nth, corrections })) as Generated;
      if (validate === null) return answer;
      const read = readAnswer(answer.text, validate);
      if ('output' in read) return { ...answer, output: read.output };
      if (corrections.length >= wrongAnswersMax) {
        throw refusal(`the model's answer was wrong ${wrongAnswersMax + 1} times: ${read.fault}`);
      }
      corrections.push(
        `Your answer cannot be used: ${read.fault}. Answer again with JSON that fits the schema, and with nothing else.`,
      );
    }
  };
}

/**
 * Equal for requests that the parent takes for the same, however they are written: the order of their
 * fields, and whether one that is left out is given as what it then is, makes no difference.
 */
function keyOf(request: unknown): string {
  const fields = JSON.parse(JSON.stringify(request) ?? 'null') as Record<string, unknown> | null;
  const said = Object.entries(fields ?? {}).filter(([, value]) => value !== '' && value !== false);
  const text = canonicalJson(Object.fromEntries(said));
  return createHash('sha256').update(text).digest('base64url');
}

function validatorOf(schema: unknown): Validate | null {
  if (schema === undefined) return null;
  if (schema === null || typeof schema !== 'object') throw refusal('the schema must be an object');
  const validate = compileSchema(schema as Readonly<Record<string, unknown>>);
  try {
    // It is compiled at its first use, and a schema that is wrong should cost no call.
    validate(null);
    return validate;
  } catch (error) {
    if (error instanceof SchemaError) throw refusal(`the schema ${error.message}`);
    throw error;
  }
}

function readAnswer(
  text: string,
  validate: Validate,
): { readonly output: unknown } | { readonly fault: string } {
  const json = unfenced(text);
  let output: unknown;
  try {
    output = JSON.parse(json);
  } catch (error) {
    return { fault: complaint(`it is not JSON: ${(error as Error).message}`) };
  }
  const fault = jsonTextFault(json);
  if (fault !== null) return { fault: `it ${fault}` };
  const issues = validate(output);
  if (issues === null) return { output };
  const list = issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');
  return { fault: complaint(`it breaks the schema: ${list}`) };
}

/** It quotes the answer, and need not end where a character does. */
function complaint(text: string): string {
  return cleanText(text.slice(0, complaintMax));
}

const fence = '```';

/** Models like to put JSON into a fenced block. */
function unfenced(text: string): string {
  const block = text.trim();
  const begin = block.indexOf('\n');
  if (begin < 0 || !block.startsWith(fence) || !block.endsWith(fence)) return text;
  // A plain search: a pattern's time could grow with the square of what a model says.
  if (!/^[a-z0-9]*$/i.test(block.slice(fence.length, begin).trim())) return text;
  return block.slice(begin, -fence.length);
}
