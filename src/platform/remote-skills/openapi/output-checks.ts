/** Compares answers with what their document describes, for the log of a run. */
import { boundedValidator } from '../../../kernel/bounded-schema.ts';
import { issuesText, type JsonSchema } from '../../../kernel/json-schema.ts';
import { SchemaError } from '../../../kernel/schema-rules.ts';

const faultCharsMax = 500;

/** What does not fit, as a line of the log; null where all does. */
export function misfitNote(schema: JsonSchema | null, output: unknown): string | null {
  if (schema === null) return null;
  try {
    const issues = boundedValidator(schema)(output);
    if (issues === null) return null;
    const fault = issuesText(issues).slice(0, faultCharsMax);
    return `The answer is not as the document describes it: ${fault}`;
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return `The answer was not compared with the document, whose schema ${error.message}`;
  }
}
