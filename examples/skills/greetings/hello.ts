/**
 * A skill to copy. Put the file, under any name, into the folder that SKILLS_DIR names (folders in
 * it are searched too), and restart: `POST /api/greetings/v1.0/hello {"name": "Ada"}` runs it.
 *
 * `skillwright` is there in every folder: the platform itself is what is imported, with or without the
 * package. Node runs the TypeScript as it is, with its types taken away; syntax that is more than types
 * (enums, namespaces) is not for it.
 */
import { defineSkill } from 'skillwright';

const greetings = { de: 'Grüezi', en: 'Hello', es: 'Hola', fr: 'Bonjour', ja: 'こんにちは' };

// `defineSkill` gives `run` its types, from the schemas below.
export default defineSkill({
  category: 'greetings',
  name: 'hello',
  version: 'v1.0',
  displayName: 'Hello',
  description: 'Greets a person in one or more languages.',

  // JSON Schema of the input. Input that breaks it is refused and never reaches the skill.
  parameters: {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 100, description: 'Whom to greet.' },
      languages: {
        type: 'array',
        items: { enum: ['de', 'en', 'es', 'fr', 'ja'] },
        minItems: 1,
        maxItems: 20,
        default: ['en'],
        description: 'Languages to greet in, in this order.',
      },
    },
  },

  // JSON Schema of the output. A run whose output breaks it has failed.
  output: {
    type: 'object',
    required: ['greetings'],
    additionalProperties: false,
    properties: {
      greetings: {
        type: 'array',
        items: { type: 'string' },
        description: 'One greeting for each language.',
      },
    },
  },

  // What may be left out: requiredScopes (the category), timeoutMs (60,000), maxAttempts (3).
  timeoutMs: 10_000,

  // Shown by GET /api/skills/{category}/{version}/{skill-name}?include=examples.
  examples: [
    {
      input: { name: 'Ada', languages: ['en', 'fr'] },
      output: { greetings: ['Hello, Ada!', 'Bonjour, Ada!'] },
    },
  ],

  async run({ name, languages = ['en'] }, ctx) {
    const said: string[] = [];
    for (const [i, language] of languages.entries()) {
      // Between two steps, stop when the run was cancelled or timed out. Pass the signal on to
      // functions that take one: fetch(url, { signal: ctx.signal }).
      ctx.signal.throwIfAborted();
      said.push(`${greetings[language]}, ${name}!`);
      ctx.progress((i + 1) / languages.length, `greeted in ${language}`);
    }
    ctx.log('All greetings are ready', { languages: languages.length });
    return { greetings: said };
  },
});
