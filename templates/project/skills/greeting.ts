import { defineSkill } from 'skillwright';

/** The smallest skill: a name in, a greeting out. `run` has its types from the two schemas. */
export default defineSkill({
  category: 'examples',
  name: 'greeting',
  version: 'v1.0',
  displayName: 'Greeting',
  description: 'Greets a person.',
  parameters: {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: { name: { type: 'string', minLength: 1, maxLength: 200 } },
  },
  output: {
    type: 'object',
    required: ['greeting'],
    properties: { greeting: { type: 'string' } },
  },
  // `skillwright test` runs these.
  examples: [{ input: { name: 'Ada' }, output: { greeting: 'Hello, Ada!' } }],

  run({ name }, ctx) {
    ctx.log('greeting', { name });
    return { greeting: `Hello, ${name}!` };
  },
});
