/**
 * A skill to copy. Put the file, under any name, into the folder that SKILLS_DIR names (folders in
 * it are searched too), and restart: `POST /api/greetings/v1.0/hello {"name": "Ada"}` runs it.
 *
 * It imports nothing, so it works wherever it is copied to. Node runs the TypeScript as it is, with
 * its types taken away; syntax that is more than types (enums, namespaces) is not for it.
 */

/** What the schema in `parameters` lets through; the platform checks it before `run` is called. */
interface Input {
  readonly name: string;
  readonly languages?: readonly Language[];
}

/** What this skill uses of its context. The documentation lists everything that is there. */
interface Context {
  /** Aborts at the deadline and when the job is cancelled. */
  readonly signal: AbortSignal;
  /** Adds a line to the job's event stream. */
  log(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Says how far the run is, from 0 to 1. */
  progress(fraction: number, note?: string): void;
}

const greetings = { de: 'Grüezi', en: 'Hello', es: 'Hola', fr: 'Bonjour', ja: 'こんにちは' };
type Language = keyof typeof greetings;

export default {
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
        items: { type: 'string', enum: Object.keys(greetings) },
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

  async run({ name, languages = ['en'] }: Input, ctx: Context) {
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
};
