/**
 * The verbs of memory (remember, recall, forget) with their arguments and limits, for the code of a skill and the
 * tools of a model.
 */
/** Memories in the answer to one `recall`: without a limit, and at most. */
export const recallDefault = 50;
export const recallMax = 200;
/** Seconds until a memory expires: ten years at most. */
export const ttlMax = 315_360_000;

const rememberFields = {
  content: { type: 'string', description: 'What to remember, complete in itself.' },
  tag: { type: 'string', description: 'Kind of memory, such as preference or fact.' },
  metadata: { type: 'object' },
  ttl_seconds: {
    type: 'integer',
    minimum: 1,
    maximum: ttlMax,
    description: 'Seconds after which it expires, for what is true for a time only.',
  },
} as const;
const updates =
  'Where the same is known already, or with another number, that memory is updated, and the answer has updated and old_content.';

/** The verbs as a model is offered them. */
const memoryTools = [
  {
    name: 'remember',
    description: `Keeps something for later conversations: of the user of this run, unless whose is agent. ${updates}`,
    parameters: {
      type: 'object',
      properties: {
        ...rememberFields,
        whose: {
          type: 'string',
          enum: ['user', 'agent'],
          description:
            'user: only runs for this user can recall it. agent: runs for all users can; never for personal data.',
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

/** A verb as a tool of a model. */
interface MemoryTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The tools that differ for a model that may change the memories of the run's user alone. */
const ofUserAlone: Readonly<Partial<Record<MemoryVerb, MemoryTool>>> = {
  remember: {
    name: 'remember',
    description: `Keeps something of the user of this run, for later conversations with this user. ${updates}`,
    parameters: {
      type: 'object',
      properties: rememberFields,
      required: ['content'],
      additionalProperties: false,
    },
  },
  forget: {
    name: 'forget',
    description: 'Deletes a memory of the user of this run; user_id of a memory says whose it is.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'string' } },
      required: ['id'],
      additionalProperties: false,
    },
  },
};

/**
 * What runs of an agent may do with its memory. `user` differs by asker: code of skills may read and write both the
 * agent's and the user's memories; a model reads both, and writes and forgets those of the run's user alone.
 */
export type MemoryMode = 'read_write' | 'user' | 'read' | 'off';

/** What one asker may do. `user`: read all, write and forget the memories of the run's user. */
export type MemoryRights = MemoryMode;

export const rightsOfCode = (mode: MemoryMode): MemoryRights =>
  mode === 'user' ? 'read_write' : mode;

export const rightsOfModel = (mode: MemoryMode, hasUser: boolean): MemoryRights =>
  mode === 'user' && !hasUser ? 'read' : mode;

/** Why a verb may not be used; null where it may. */
export function memoryFault(rights: MemoryRights, verb: MemoryVerb): string | null {
  if (rights === 'off') return 'the memory of this agent is off';
  if (rights === 'read' && verb !== 'recall') return 'this agent may only read its memory';
  return null;
}

/** The tools that a model with these rights is offered. */
export const memoryToolsIn = (rights: MemoryRights): readonly MemoryTool[] =>
  memoryTools
    .filter(({ name }) => memoryFault(rights, name) === null)
    .map((tool) => (rights === 'user' ? (ofUserAlone[tool.name] ?? tool) : tool));

export type MemoryVerb = (typeof memoryTools)[number]['name'];

export function isMemoryVerb(name: string): name is MemoryVerb {
  return memoryTools.some((tool) => tool.name === name);
}

/** The names of a verb's arguments. */
export function argumentsOf(verb: MemoryVerb): string[] {
  const tool = memoryTools.find(({ name }) => name === verb);
  return Object.keys(tool?.parameters.properties ?? {});
}
