/**
 * `/openapi.json?skills=1`: the description of the API with an operation for each active skill that a key may run,
 * in the order of the registry. The same skills give the same bytes.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type ApiDocument, documentOf } from '../../../adapters/http/openapi.ts';
import { type Caller, hasScopes } from '../../../kernel/caller.ts';
import { invalid } from '../../../kernel/errors.ts';
import type { Skill, SkillRegistry } from '../registry.ts';
import type { Components } from './schema-components.ts';
import {
  operationOf,
  type SharedOperation,
  type SkillOperation,
  tagOf,
} from './skill-operations.ts';

/** Skills of one document, and its bytes. */
const skillsMax = 2_000;
const bytesMax = 32 * 1024 * 1024;
/** Documents that are kept, for keys that may run different skills, and their bytes together. */
const keptMax = 4;
const keptBytesMax = bytesMax;

/** The parts of the description of the API that this file reads. */
interface Described {
  readonly tags: readonly object[];
  readonly paths: Readonly<Record<string, { readonly post?: Execution }>>;
  readonly components: Readonly<Record<string, Components>>;
}

interface Execution {
  readonly security: unknown;
  readonly parameters: readonly { readonly in: string; readonly name: string }[];
  readonly responses: Readonly<Record<string, object>>;
}

/** What an API is described with for the skills that it has. */
interface Base {
  readonly described: Described;
  readonly shared: SharedOperation;
  /** Where the operations refer to what they share. */
  readonly components: Readonly<Record<string, Components>>;
}

interface Kept {
  readonly skills: readonly Skill[];
  readonly document: ApiDocument;
}

/** Describes the API for callers. */
export class SkillsDocument {
  readonly #skills: SkillRegistry;
  #base: Base | undefined;
  readonly #operations = new WeakMap<Skill, SkillOperation>();
  /** The most recently made one last. */
  readonly #kept: Kept[] = [];

  constructor(skills: SkillRegistry) {
    this.#skills = skills;
  }

  /** `document` describes the API without skills, as it does for every caller. */
  async describe(
    document: ApiDocument,
    { organizationId, scopes }: Pick<Caller, 'organizationId' | 'scopes'>,
  ): Promise<ApiDocument> {
    const runnable = this.#skills
      .list(organizationId)
      .filter((skill) => hasScopes(scopes, skill.requiredScopes));
    const known = this.#kept.find((one) => isSame(one.skills, runnable));
    if (known !== undefined) return known.document;
    if (runnable.length > skillsMax)
      throw tooLarge(`${runnable.length} skills: at most ${skillsMax}`);
    this.#base ??= baseOf(JSON.parse(document.bytes.toString()) as Described);
    const operations = await this.#operationsOf(runnable, this.#base.shared);
    const whole = documentOf(withSkills(this.#base, runnable, operations));
    if (whole.bytes.length > bytesMax)
      throw tooLarge(`${whole.bytes.length} bytes: at most ${bytesMax}`);
    this.#kept.push({ skills: runnable, document: whole });
    while (this.#kept.length > keptMax || bytesOf(this.#kept) > keptBytesMax) this.#kept.shift();
    return whole;
  }

  async #operationsOf(skills: readonly Skill[], shared: SharedOperation) {
    const operations: SkillOperation[] = [];
    for (const skill of skills) {
      let operation = this.#operations.get(skill);
      if (operation === undefined) {
        operation = operationOf(skill, shared);
        this.#operations.set(skill, operation);
        // Each has schemas of up to 64 KiB, and there may be thousands.
        await yieldToEventLoop();
      }
      operations.push(operation);
    }
    return operations;
  }
}

function bytesOf(kept: readonly Kept[]): number {
  return kept.reduce((sum, { document }) => sum + document.bytes.length, 0);
}

function tooLarge(what: string) {
  return invalid('skills', `would describe ${what} are; use a key with fewer scopes`);
}

function isSame(some: readonly Skill[], others: readonly Skill[]): boolean {
  return some.length === others.length && some.every((skill, i) => skill === others[i]);
}

/** Moves what the operations share to components. */
function baseOf(described: Described): Base {
  const execution = described.paths['/api/{category}/{version}/{skillName}']?.post;
  if (execution === undefined) throw new Error('The description has no operation that runs skills');
  const parameters = execution.parameters.filter((parameter) => parameter.in === 'header');
  const { 200: ended, ...responses } = execution.responses;
  const { content: _, ...told } = ended as { content: object; description: string };
  const reference = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });
  const referred = (kind: string, names: readonly string[]) =>
    names.map((name) => reference(kind, name));
  return {
    described,
    shared: {
      security: execution.security,
      parameters: referred(
        'parameters',
        parameters.map(({ name }) => name),
      ),
      responses: Object.fromEntries(
        Object.keys(responses).map((status) => [status, reference('responses', `run${status}`)]),
      ),
      ended: told,
    },
    components: {
      parameters: Object.fromEntries(parameters.map((one) => [one.name, one])),
      responses: Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [`run${status}`, response]),
      ),
    },
  };
}

function withSkills(
  { described, components }: Base,
  skills: readonly Skill[],
  made: readonly SkillOperation[],
): object {
  const categories = new Set(skills.map(({ category }) => category));
  const tags = [...categories].map((category) => ({
    name: tagOf({ category }),
    description: `The skills of the category ${category} that the key may run.`,
  }));
  const schemas = Object.assign(
    { ...described.components['schemas'] },
    ...made.map((one) => one.schemas),
  );
  return {
    ...described,
    tags: [...described.tags, ...tags],
    paths: {
      ...described.paths,
      ...Object.fromEntries(made.map(({ path, operation }) => [path, { post: operation }])),
    },
    components: {
      ...described.components,
      ...components,
      parameters: { ...described.components['parameters'], ...components['parameters'] },
      schemas,
    },
  };
}
