/** Compares answers with what their document describes, for the log of a run. */
import {
  compileSchema,
  issuesText,
  type JsonSchema,
  type Validate,
} from '../../kernel/json-schema.ts';

/** Compiled schemas that are kept; compiling one takes some milliseconds. */
const keptMax = 50;
const faultCharsMax = 500;

export interface OutputChecks {
  /** What does not fit, as one text; null where all does. */
  faultOf(schema: JsonSchema | null, output: unknown): string | null;
}

export function createOutputChecks(): OutputChecks {
  const kept = new Map<string, Validate>();
  return {
    faultOf(schema, output) {
      if (schema === null) return null;
      const key = JSON.stringify(schema);
      const validate = kept.get(key) ?? compileSchema(schema);
      // The least recently used is the first.
      kept.delete(key);
      kept.set(key, validate);
      if (kept.size > keptMax) kept.delete(kept.keys().next().value ?? '');
      const issues = validate(output);
      return issues === null ? null : issuesText(issues).slice(0, faultCharsMax);
    },
  };
}
