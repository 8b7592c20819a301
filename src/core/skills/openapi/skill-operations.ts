/** The operation of each skill: `POST /api/{category}/{version}/{name}` with its own schemas. */
import type { Skill } from '../registry.ts';
import { operationIdOf } from './operation-id.ts';
import { type Components, componentsOf } from './schema-components.ts';

/** What the operations of all skills share, from that of the routes. */
export interface SharedOperation {
  readonly security: unknown;
  readonly parameters: readonly object[];
  /** By status, without the 200. */
  readonly responses: Readonly<Record<string, object>>;
  /** The job within the wait, whose output is each skill's own. */
  readonly ended: { readonly description: string; readonly headers?: object };
}

export interface SkillOperation {
  readonly path: string;
  readonly operation: object;
  readonly schemas: Components;
}

/** Examples of one operation, and characters of one: the registry has the others. */
const examplesMax = 3;
const exampleCharsMax = 4_096;

/** Of one category. */
export function tagOf({ category }: Pick<Skill, 'category'>): string {
  return `Skills: ${category}`;
}

export function operationOf(skill: Skill, shared: SharedOperation): SkillOperation {
  const { category, version, name, displayName, description, parameters, output } = skill;
  const operationId = operationIdOf(skill);
  const component = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}`;
  const [input, result] = [`${component}_Input`, `${component}_Output`];
  const { security, parameters: headers, responses, ended } = shared;
  const operation = {
    operationId,
    tags: [tagOf(skill)],
    summary: displayName,
    description,
    security,
    parameters: headers,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemaNamed(input), ...examplesOf(skill) } },
    },
    responses: {
      200: { ...ended, content: { 'application/json': { schema: jobWith(result) } } },
      ...responses,
    },
  };
  return {
    path: `/api/${category}/${version}/${name}`,
    operation,
    schemas: { ...componentsOf(input, parameters), ...componentsOf(result, output) },
  };
}

function schemaNamed(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** The job may have failed. */
function jobWith(output: string): object {
  const properties = { output: { anyOf: [schemaNamed(output), { type: 'null' }] } };
  return { allOf: [schemaNamed('Job'), { type: 'object', properties }] };
}

function examplesOf({ examples }: Skill): { examples?: object } {
  const inputs = examples
    .map(({ input }) => input)
    .filter((input) => JSON.stringify(input).length <= exampleCharsMax)
    .slice(0, examplesMax);
  if (inputs.length === 0) return {};
  const named = inputs.map((value, i) => [`example${i + 1}`, { value }]);
  return { examples: Object.fromEntries(named) };
}
