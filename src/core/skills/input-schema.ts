import { boundedValidator, checkBoundedSchema } from '../../kernel/bounded-schema.ts';
import type { Issue } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';
import { compileSchema, type JsonSchema, type Validate } from '../../kernel/json-schema.ts';
import { SchemaError } from '../../kernel/schema-rules.ts';

/** Marks a property of an input that is itself a JSON Schema, as the media type of JSON Schema. */
const schemaMediaType = 'application/schema+json';

/** The schema of a skill's input, compiled at the first input. That of a service outside is evaluated in bounded steps. */
export class InputSchema {
  readonly #isRemote: boolean;
  readonly #validate: Validate;
  /** Properties that are schemas themselves. */
  readonly #schemas: readonly string[];

  constructor(schema: JsonSchema, isRemote: boolean) {
    this.#isRemote = isRemote;
    this.#schemas = isRemote ? [] : schemasIn(schema);
    this.#validate = isRemote ? boundedValidator(schema) : compileSchema(schema);
  }

  /**
   * The faults of an input, or null. An input that cannot be checked by the schema of a service is refused: the schema
   * may have been stored by a version of the platform with other bounds.
   */
  issuesOf(input: unknown): Issue[] | null {
    try {
      return this.#validate(input) ?? this.#schemaIssues(input);
    } catch (error) {
      if (!this.#isRemote || !(error instanceof SchemaError)) throw error;
      return [
        { field: 'body', issue: `cannot be checked: the schema of the skill ${error.message}` },
      ];
    }
  }

  /** The faults of the schemas in a valid input, or null. Checked in bounded steps, because clients wrote them. */
  #schemaIssues(input: unknown): Issue[] | null {
    for (const field of this.#schemas) {
      const schema = isObject(input) ? input[field] : undefined;
      if (!isObject(schema)) continue;
      try {
        checkBoundedSchema(schema);
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        return [{ field, issue: error.message }];
      }
    }
    return null;
  }
}

function schemasIn({ properties }: JsonSchema): string[] {
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, property]) =>
    isObject(property) && property['contentMediaType'] === schemaMediaType ? name : [],
  );
}
