/**
 * The validator of the form library, used only to find the oneOf option that data matches. It interprets
 * schemas; the library's own compiles code, which the content security policy forbids. The platform
 * validates what is sent.
 */
import { Validator } from '@cfworker/json-schema';
import {
  type RJSFSchema,
  ROOT_SCHEMA_PREFIX,
  type ValidatorType,
  withIdRefPrefix,
} from '@rjsf/utils';

/** Base of relative `$ref`s; never shown. */
const base = 'https://form.invalid/';

export const validator: ValidatorType = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  rawValidation: () => ({ errors: [] }),
  isValid(schema, formData, rootSchema) {
    if (formData === undefined) return false;
    try {
      const judge = new Validator(prefixed(schema, base), '2020-12', true);
      judge.addSchema(prefixed(rootSchema, `${base}${ROOT_SCHEMA_PREFIX}`));
      // As it would be sent: without undefined members.
      return judge.validate(JSON.parse(JSON.stringify(formData))).valid;
    } catch {
      // An invalid schema matches nothing.
      return false;
    }
  },
};

const prefixed = (schema: RJSFSchema, $id: string): object => ({
  ...(withIdRefPrefix(schema) as object),
  $id,
});
