/** Types, which the compiler checks: `tsc` of the whole project is what fails here. */
import Type from 'typebox';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineSkill, type SkillContext } from './definition.ts';
import type { SkillInput, SkillOutput } from './schema-types.ts';

const names = {
  category: 'own',
  name: 'typed',
  version: 'v1.0',
  displayName: 'Typed',
  description: 'Is typed.',
};
const anything = { type: 'object' } as const;
const text = {
  type: 'object',
  required: ['text'],
  properties: { text: { type: 'string' }, loud: { type: 'boolean' } },
} as const;

describe('run has the types of the schemas', () => {
  test('of fields that are required and fields that may be absent', () => {
    const skill = defineSkill({
      ...names,
      parameters: {
        type: 'object',
        required: ['text'],
        properties: {
          text: { type: 'string', maxLength: 10 },
          times: { type: 'integer', default: 1 },
          style: { enum: ['plain', 'loud'] },
          tags: { type: 'array', items: { type: ['string', 'null'] } },
        },
      },
      output: text,
      run(input) {
        expectTypeOf(input).toEqualTypeOf<{
          text: string;
          times?: number;
          style?: 'plain' | 'loud';
          tags?: (string | null)[];
        }>();
        return { text: input.text };
      },
    });

    type Output = Awaited<ReturnType<typeof skill.run>>;
    expectTypeOf<Output['text']>().toEqualTypeOf<string>();
  });

  test('in arrow functions, asynchronous ones and those that are named elsewhere', () => {
    async function shout(input: { text: string }, ctx: SkillContext) {
      return { text: await ctx.step('shout', () => input.text.toUpperCase()) };
    }
    defineSkill({ ...names, parameters: text, output: text, run: shout });
    defineSkill({ ...names, parameters: text, output: text, run: ({ text }) => ({ text }) });
    defineSkill({
      ...names,
      parameters: text,
      output: text,
      run: async ({ text }, ctx) => ({ text: await ctx.step('shout', () => text) }),
    });
  });

  test('an output may have read-only lists and undefined where a field is optional', () => {
    const output = {
      type: 'object',
      required: ['words'],
      properties: { words: { type: 'array', items: { type: 'string' } }, note: { type: 'string' } },
    } as const;
    const words: readonly string[] = ['a'];
    defineSkill({
      ...names,
      parameters: anything,
      output,
      run: () => ({ words, note: undefined }),
    });
  });

  test('the fields that a definition names are those of the schemas', () => {
    defineSkill({
      ...names,
      parameters: text,
      output: text,
      taskField: 'text',
      // @ts-expect-error It is no text.
      answerField: 'loud',
      run: ({ text }) => ({ text }),
    });
  });
});

describe('a contradiction does not compile:', () => {
  const run = defineSkill<typeof text, typeof text>;

  test('a field that the schema does not have', () => {
    // @ts-expect-error It is called text.
    run({ ...names, parameters: text, output: text, run: ({ txt }) => ({ text: txt }) });
  });

  test('a field that may be absent, taken for one that is always there', () => {
    const loud = (input: { text: string; loud: boolean }) => ({ text: `${input.loud}` });
    // @ts-expect-error The schema does not require `loud`.
    run({ ...names, parameters: text, output: text, run: loud });
  });

  test('an output of another type, or without a required field', () => {
    // @ts-expect-error A number is no text.
    run({ ...names, parameters: text, output: text, run: () => ({ text: 1 }) });
    // @ts-expect-error It has no text.
    run({ ...names, parameters: text, output: text, run: async () => ({ loud: true }) });
  });

  test('a value that is not among those of an enum', () => {
    defineSkill({
      ...names,
      parameters: anything,
      output: { type: 'object', required: ['state'], properties: { state: { enum: ['on'] } } },
      // @ts-expect-error It is not in the list.
      run: () => ({ state: 'off' }),
    });
  });
});

test('the types of a schema are exact where it is written out, and unknown where it is not', () => {
  const written = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
  const keys = Object.keys(written);
  expectTypeOf<SkillInput<typeof written>>().toBeUnknown();
  expectTypeOf<SkillInput<{ type: 'object' }>>().toEqualTypeOf<{ [name: string]: unknown }>();
  expectTypeOf<SkillOutput<{ type: 'object' }>>().toEqualTypeOf<object>();
  expectTypeOf<
    SkillInput<{
      readonly type: 'object';
      readonly properties: {
        readonly key: { readonly type: 'string'; readonly enum: typeof keys };
        readonly pair: {
          readonly type: 'array';
          readonly prefixItems: readonly [{ readonly type: 'string' }, { readonly type: 'number' }];
          readonly items: false;
        };
        readonly either: {
          readonly anyOf: readonly [{ readonly type: 'null' }, { readonly const: 3 }];
        };
      };
    }>['key']
  >().toEqualTypeOf<string | undefined>();
  // With any annotation, for a schema of which the compiler knows nothing.
  defineSkill({
    ...names,
    parameters: written,
    output: written,
    run: (input: { text: string }) => ({ text: input.text }),
  });
  // @ts-expect-error Without one, it is unknown.
  defineSkill({ ...names, parameters: written, output: written, run: (input) => input.text });
});

test('a schema of several types allows each of them, with its own keywords', () => {
  type Schema = {
    readonly type: readonly ['object', 'null'];
    readonly required: readonly ['list'];
    readonly properties: {
      readonly list: {
        readonly type: readonly ['array', 'null'];
        readonly items: { readonly type: 'string' };
      };
    };
  };
  expectTypeOf<SkillInput<Schema>>().toEqualTypeOf<{ list: string[] | null } | null>();
});

test('the types of TypeBox are those of its schemas', () => {
  defineSkill({
    ...names,
    parameters: Type.Object({ text: Type.String(), times: Type.Optional(Type.Number()) }),
    output: Type.Object({ text: Type.String() }),
    run(input) {
      expectTypeOf(input).toEqualTypeOf<{ text: string; times?: number }>();
      return { text: input.text };
    },
  });
});

test('the types of zod are its inputs for parameters and its outputs for an output', () => {
  const Input = z.object({ text: z.string(), times: z.number().default(1) });
  defineSkill({
    ...names,
    parameters: z.toJSONSchema(Input, { io: 'input' }),
    output: z.toJSONSchema(z.object({ text: z.string() })),
    run(input) {
      expectTypeOf(input).toEqualTypeOf<{ text: string; times?: number | undefined }>();
      const { text, times } = Input.parse(input);
      return { text: text.repeat(times) };
    },
  });
  defineSkill({
    ...names,
    parameters: z.toJSONSchema(Input, { io: 'input' }),
    output: z.toJSONSchema(z.object({ text: z.string() })),
    // @ts-expect-error A number is no text.
    run: ({ times }) => ({ text: times }),
  });
});
