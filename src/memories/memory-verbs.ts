/**
 * The verbs of memory (remember, recall, forget) with their arguments and limits, for the code of a skill and the
 * tools of a model.
 */
/** Memories in the answer to one `recall`: without a limit, and at most. */
export const recallDefault = 50;
export const recallMax = 200;
/** Seconds until a memory expires: ten years at most. */
export const ttlMax = 315_360_000;

/** The verbs as a model is offered them. */
const memoryTools = [
  {
    name: 'remember',
    description:
      'Keeps something for later conversations: of the user of this run, unless whose is agent. Where the same is known ' +
      'already, or with another number, that memory is updated, and the answer has updated and old_content.',
    parameters: {
      type: 'object',
      properties: {
        content: { type: 'string', description: 'What to remember, complete in itself.' },
        tag: { type: 'string', description: 'Kind of memory, such as preference or fact.' },
        metadata: { type: 'object' },
        whose: {
          type: 'string',
          enum: ['user', 'agent'],
          description:
            'user: only runs for this user can recall it. agent: runs for all users can; never for personal data.',
        },
        ttl_seconds: {
          type: 'integer',
          minimum: 1,
          maximum: ttlMax,
          description: 'Seconds after which it expires, for what is true for a time only.',
        },
      },
      required: ['content'],
      additionalProperties: false,
    },
  },
  {
    name: 'recall',
    description:
      'Finds what was remembered: the newest, or what has words of a query, best first. Words in double quotes must stand together.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string' },
        tag: { type: 'string' },
        limit: { type: 'integer', minimum: 1, maximum: recallMax },
        whose: {
          type: 'string',
          enum: ['user', 'agent'],
          description: 'Memories of the user of this run alone, or those that all users share.',
        },
      },
      additionalProperties: false,
    },
  },
  {
    name: 'forget',
    description: 'Deletes a memory.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'string' } },
      required: ['id'],
      additionalProperties: false,
    },
  },
] as const;

/** What an agent may do with its memory. */
export type MemoryMode = 'read_write' | 'read' | 'off';

/** Why an agent may not use a verb; null where it may. */
export function memoryFault(mode: MemoryMode, verb: MemoryVerb): string | null {
  if (mode === 'off') return 'the memory of this agent is off';
  if (mode === 'read' && verb !== 'recall') return 'this agent may only read its memory';
  return null;
}

/** The tools that a model is offered. */
export const memoryToolsIn = (mode: MemoryMode) =>
  memoryTools.filter(({ name }) => memoryFault(mode, name) === null);

export type MemoryVerb = (typeof memoryTools)[number]['name'];

export function isMemoryVerb(name: string): name is MemoryVerb {
  return memoryTools.some((tool) => tool.name === name);
}

/** The names of a verb's arguments. */
export function argumentsOf(verb: MemoryVerb): string[] {
  const tool = memoryTools.find(({ name }) => name === verb);
  return Object.keys(tool?.parameters.properties ?? {});
}
