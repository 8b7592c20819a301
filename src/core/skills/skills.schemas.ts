/** What skills look like on the wire. */
import { Type } from 'typebox';
import { FreeObject, Id, Timestamp, Words } from '../../adapters/http/schemas.ts';
import { limitScopes } from './limits.ts';
import { Setting } from './settings.routes.ts';

const listed = {
  id: Id,
  category: Type.String(),
  skill_name: Type.String(),
  version: Type.String(),
  display_name: Type.String(),
  description: Type.String(),
  required_scopes: Type.Array(Type.String()),
  is_active: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
};
export const listedExample = {
  id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
  category: 'util',
  skill_name: 'echo',
  version: 'v1.0',
  display_name: 'Echo',
  description: 'Returns its input.',
  required_scopes: ['util'],
  is_active: true,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};
const schemas = {
  parameters_schema: { type: 'object', properties: { text: { type: 'string' } } },
  output_schema: { type: 'object', properties: { text: { type: 'string' } } },
  examples: [{ input: { text: 'hello' }, output: { text: 'hello' } }],
};
export const ListedSkill = Type.Object(listed, { title: 'ListedSkill' });
const examples = Type.Array(
  Type.Object({
    input: Type.Unknown(),
    output: Type.Optional(
      Type.Unknown({ description: 'Absent if it depends on external services.' }),
    ),
  }),
  { description: 'Example inputs with their outputs.' },
);
const per = Words(limitScopes);
export const FullSkill = Type.Object(
  {
    ...listed,
    parameters_schema: FreeObject,
    output_schema: FreeObject,
    examples: Type.Optional(examples),
    config: Type.Optional(
      Type.Array(Setting, {
        description: 'The settings that it declares; absent when it declares none.',
      }),
    ),
    concurrency: Type.Optional(
      Type.Array(Type.Object({ limit: Type.Integer({ minimum: 1 }), per }), {
        description: 'How many of its runs go on at a time; absent for any number.',
      }),
    ),
    rate: Type.Optional(
      Type.Array(
        Type.Object({
          limit: Type.Integer({ minimum: 1 }),
          per_seconds: Type.Integer({ minimum: 1 }),
          per,
        }),
        {
          description: 'How many of its runs start within so many seconds; absent for any number.',
        },
      ),
    ),
    slows_down: Type.Optional(
      Type.Boolean({
        description: 'true: a refusal by a service puts off all its runs; else absent.',
      }),
    ),
  },
  {
    title: 'Skill',
    description: 'The skill with both schemas and its settings, and its examples if requested.',
    examples: [{ ...listedExample, ...schemas }],
  },
);

export const IncludedParts = Type.Object({
  include: Type.Optional({
    ...Words(['examples']),
    description: 'examples: adds example inputs.',
  }),
});

/** A SKILL.md that is left out. */
export const LeftOut = Type.Object(
  {
    file: Type.String({ description: 'Path of the SKILL.md on the machine of the platform.' }),
    reason: Type.String({ description: 'The rule that it breaks.' }),
  },
  { title: 'LeftOutSkill' },
);
