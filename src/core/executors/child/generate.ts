/**
 * `ctx.generate` in the child: sends the request to the parent and validates the model's answer against
 * the request's schema, which may be a client's and has bounded steps. An invalid answer goes back to the model with
 * its faults.
 */
import { createHash } from '../../../kernel/create-hash.ts';
import { issuesText, type Validate } from '../../../kernel/json-schema.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { SchemaError } from '../../../kernel/schema-rules.ts';
import { canonicalJson, cleanText, jsonTextFault } from '../../../kernel/text.ts';
import type { Generated, GenerateRequest } from '../../skills/definition.ts';
import { type Part, takeNumbers } from './part.ts';

/** Invalid answers that are corrected; one more fails the request. */
const correctionsMax = 3;
/** Characters of a correction. */
const correctionCharsMax = 2_000;

const cutAnswer = 'it was cut, because it was longer than an answer may be, and has to be shorter';

/** Asks the parent, like `ask` in run-context.ts. */
export type AskGenerate = (payload: unknown) => Promise<unknown>;

/** The `generate` of one part of a run; `counter` is what numbers its requests now. */
export function createGenerate(
  ask: AskGenerate,
  counter: () => Pick<Part, 'names'>,
): (request: GenerateRequest) => Promise<Generated> {
  return async (request) => {
    const nth = takeNumbers(counter(), `generate ${keyOf(request)}`);
    const corrections: string[] = [];
    const validate = request?.schema === undefined ? null : await validatorOf(request.schema);
    for (;;) {
      const answer = (await ask({ request, nth, corrections })) as Generated;
      if (validate === null) return answer;
      const read = readAnswer(answer.text, validate);
      if ('output' in read) return { ...answer, output: read.output };
      if (corrections.length >= correctionsMax) {
        throw permanentError(
          `the model's answer was wrong ${correctionsMax + 1} times: ${read.fault}`,
        );
      }
      const cut = answer.isCut ? `${cutAnswer}, so ` : '';
      corrections.push(
        `Your answer cannot be used: ${cut}${read.fault}. Answer again with JSON that fits the schema, and with nothing else.`,
      );
    }
  };
}

/**
 * Equal for requests that the parent treats as equal: the order of the fields does not count, nor whether
 * a field with its default value is written or left out.
 */
function keyOf(request: unknown): string {
  const fields = JSON.parse(JSON.stringify(request) ?? 'null') as Record<string, unknown> | null;
  const said = Object.entries(fields ?? {}).filter(([, value]) => value !== '' && value !== false);
  const text = canonicalJson(Object.fromEntries(said));
  return createHash('sha256').update(text).digest('base64url');
}

async function validatorOf(schema: unknown): Promise<Validate> {
  if (schema === null || typeof schema !== 'object')
    throw permanentError('the schema must be an object');
  // Loaded only for a run that uses it: most requests have no schema.
  const { boundedValidator } = await import('../../../kernel/bounded-schema.ts');
  const bounded = boundedValidator(schema as Readonly<Record<string, unknown>>);
  const validate: Validate = (value) => {
    try {
      return bounded(value);
    } catch (error) {
      if (error instanceof SchemaError) throw permanentError(`the schema ${error.message}`);
      throw error;
    }
  };
  // The first use reads the schema, so an invalid schema costs no call of the model.
  validate(null);
  return validate;
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
    return { fault: cutFault(`it is not JSON: ${(error as Error).message}`) };
  }
  const fault = jsonTextFault(json);
  if (fault !== null) return { fault: `it ${fault}` };
  const issues = validate(output);
  if (issues === null) return { output };
  return { fault: cutFault(`it breaks the schema: ${issuesText(issues)}`) };
}

/** Cleaned, because it quotes the answer and the cut may split a character. */
function cutFault(text: string): string {
  return cleanText(text.slice(0, correctionCharsMax));
}

const fence = '```';

/** Models often put JSON into a fenced block. */
function unfenced(text: string): string {
  const block = text.trim();
  const begin = block.indexOf('\n');
  if (begin < 0 || !block.startsWith(fence) || !block.endsWith(fence)) return text;
  // A plain search: a pattern's time could grow with the square of what a model says.
  if (!/^[a-z0-9]*$/i.test(block.slice(fence.length, begin).trim())) return text;
  return block.slice(begin, -fence.length);
}
