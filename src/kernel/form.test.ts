import { expect, test } from 'vitest';
import { answerIssues, type Form, readForm } from './form.ts';

const form = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name', minLength: 2, default: 'Ada' },
    mail: { type: 'string', format: 'email' },
    n: { type: 'integer', minimum: 1 },
    sure: { type: 'boolean', description: 'Really?' },
    color: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
    size: { type: 'string', oneOf: [{ const: 's', title: 'Small' }] },
    days: { type: 'array', items: { type: 'string', enum: ['mon', 'tue'] }, maxItems: 1 },
    toppings: { type: 'array', items: { anyOf: [{ const: 'a', title: 'Apple' }] } },
  },
  required: ['name'],
};

test('a form has texts, numbers, yes and no, choices, and lists of choices', () => {
  const more = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Order' };
  expect(readForm({ ...form, ...more, additionalProperties: false })).toEqual({ form });
  expect(readForm({ type: 'object', properties: {} })).toEqual({
    form: { type: 'object', properties: {} },
  });
});

test.each([
  [[], 'must be a JSON Schema of an object'],
  [{ type: 'array' }, 'must have the type object'],
  [{ type: 'object' }, 'must have properties'],
  [{ ...form, allOf: [] }, 'has "allOf", which no form can show'],
  [{ ...form, required: ['other'] }, 'requires what is none of its fields'],
  [
    { type: 'object', properties: { a: true } },
    'has the field "a", which must have one of the types',
  ],
  [{ type: 'object', properties: { a: { type: 'object' } } }, 'must have one of the types'],
  [{ type: 'object', properties: { a: { type: 'string', $ref: '#' } } }, 'has "$ref"'],
  [{ type: 'object', properties: { a: { type: 'string', format: 'ipv4' } } }, 'another format'],
  [{ type: 'object', properties: { a: { type: 'string', oneOf: [{}] } } }, 'no list of choices'],
  [
    { type: 'object', properties: { a: { type: 'array', items: { type: 'number' } } } },
    'no choice of texts',
  ],
  [
    { type: 'object', properties: { a: { type: 'string', minLength: 'x' } } },
    'no valid JSON Schema',
  ],
  [{ type: 'object', properties: { a: { type: 'string', pattern: '(' } } }, 'pattern'],
  [{ type: 'object', properties: { '': { type: 'string' } } }, '1 to 100 characters'],
  [
    { type: 'object', properties: { a: { type: 'string', title: 'x'.repeat(40_000) } } },
    'must be at most 32 KiB of JSON',
  ],
  [
    {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 51 }, (_, i) => [`f${i}`, { type: 'boolean' }]),
      ),
    },
    'has more than 50 fields',
  ],
])('%j is no form', (value, fault) => {
  expect(readForm(value)).toEqual({ fault: expect.stringContaining(fault) });
});

test.each([
  [{ name: 'Ada' }, null],
  [{ name: 'Ada', mail: 'a@b.example', n: 3, sure: false, color: 'r', days: ['mon'] }, null],
  [{}, ['name']],
  [{ name: 'A', n: 0.5, color: 'b' }, ['name', 'n', 'color']],
  [{ name: 'Ada', size: 'l', other: 1 }, ['size', 'other']],
  [{ name: 'x'.repeat(70_000) }, ['body']],
  [{ name: 'a\0b' }, ['body']],
])('the answer %j fits the form but for %j', (answer, fields) => {
  const issues = answerIssues(form as unknown as Form, answer);
  const named = issues === null ? null : [...new Set(issues.map(({ field }) => field))];
  expect(named?.toSorted() ?? null).toEqual(fields?.toSorted() ?? null);
});
