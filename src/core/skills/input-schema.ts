import { boundedValidator } from '../../kernel/bounded-schema.ts';
import type { Issue } from '../../kernel/errors.ts';
import { compileSchema, type JsonSchema, type Validate } from '../../kernel/json-schema.ts';
import { SchemaError } from '../../kernel/schema-rules.ts';

/** The schema of a skill's input, compiled at the first input. That of a service outside is evaluated in bounded steps. */
export class InputSchema {
  readonly #isRemote: boolean;
  readonly #validate: Validate;

  constructor(schema: JsonSchema, isRemote: boolean) {
    this.#isRemote = isRemote;
    this.#validate = isRemote ? boundedValidator(schema) : compileSchema(schema);
  }

  /**
   * The faults of an input, or null. An input that cannot be checked by the schema of a service is refused: the schema
   * may have been stored by a version of the platform with other bounds.
   */
  issuesOf(input: unknown): Issue[] | null {
    try {
      return this.#validate(input);
    } catch (error) {
      if (!this.#isRemote || !(error instanceof SchemaError)) throw error;
      return [
        { field: 'body', issue: `cannot be checked: the schema of the skill ${error.message}` },
      ];
    }
  }
}
