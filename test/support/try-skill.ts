/** Runs a skill as the platform does, with its schemas. */

import { Ajv2020 } from 'ajv/dist/2020.js';
import type {
  Memory,
  SkillContext,
  SkillDefinition,
  SkillMemory,
} from '../../src/core/skills/definition.ts';

export type JsonSchema = SkillDefinition['parameters'];

export interface Trial {
  /** Never aborts when left out. */
  readonly signal?: AbortSignal;
  readonly progress?: SkillContext['progress'];
  /** Fails when left out. */
  readonly generate?: SkillContext['generate'];
}

/** Runs the skill; throws when its schemas refuse the input or the serialized output. */
export async function trySkill<Input, Output>(
  skill: SkillDefinition<Input, Output>,
  input: Input,
  trial: Trial = {},
): Promise<Output> {
  assertAllows(skill.parameters, input, 'input');
  const output = await skill.run(input, contextOf(trial));
  const written: unknown = JSON.parse(JSON.stringify(output));
  assertAllows(skill.output, written, 'output');
  return written as Output;
}

/** Whether the skill's parameters allow the input. */
export function allows(schema: JsonSchema, value: unknown): boolean {
  return judge(schema)(value);
}

function assertAllows(schema: JsonSchema, value: unknown, what: string): void {
  const validate = judge(schema);
  if (validate(value)) return;
  throw new Error(`The ${what} breaks the schema: ${JSON.stringify(validate.errors)}`);
}

function judge(schema: JsonSchema) {
  return new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false }).compile(
    schema,
  );
}

/** A context in which only the members that the trial names work. */
export function contextOf({ signal, progress, generate }: Trial): SkillContext {
  return {
    jobId: 'job',
    agentId: 'agent',
    conversationId: 'conversation',
    organizationId: 'organization',
    attempt: 1,
    config: {},
    signal: signal ?? new AbortController().signal,
    log: () => undefined,
    progress: progress ?? (() => undefined),
    message: () => undefined,
    callSkill: notHere,
    memory: emptyMemory(),
    files: { put: notHere, get: notHere },
    generate: generate ?? notHere,
    step: (async (_name: string, act: () => unknown) => act()) as unknown as SkillContext['step'],
    map: notHere,
    sleep: notHere,
    sleepUntil: notHere,
    waitForEvent: notHere,
    approve: notHere,
    run: notHere,
    now: () => new Date(0),
    uuid: () => '00000000-0000-4000-8000-000000000000',
  };
}

function notHere(): Promise<never> {
  return Promise.reject(new Error('not in this test'));
}

/** An in-memory memory for the trial; a query matches when all its words occur literally. */
function emptyMemory(): SkillMemory {
  let memories: Memory[] = [];
  let made = 0;
  let profile = '';
  const at = '2026-01-01T00:00:00.000Z';
  return {
    async remember({ content, tag = 'fact', metadata = {} }) {
      made += 1;
      const memory = {
        id: `memory-${made}`,
        content,
        tag,
        metadata,
        user_id: null,
        created_at: at,
        updated_at: at,
        expires_at: null,
      };
      memories.unshift(memory);
      return memory;
    },
    async recall({ query = '', tag, limit = 50 } = {}) {
      const words = query.split(' ');
      return memories
        .filter((one) => tag === undefined || one.tag === tag)
        .filter((one) => words.every((word) => one.content.includes(word)))
        .slice(0, limit);
    },
    async forget(id) {
      const left = memories.filter((one) => one.id !== id);
      const isThere = left.length < memories.length;
      memories = left;
      return isThere;
    },
    profile: async () => profile,
    get asModel() {
      return this;
    },
    async updateProfile(content) {
      profile = content;
    },
  };
}
