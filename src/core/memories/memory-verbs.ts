/**
 * The verbs of memory (remember, recall, forget, update_profile) with their arguments and limits, for the code of a skill and the
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

/** The tool that keeps the profile of the run's user. */
const profileTool = (maxBytes: number) => ({
  name: 'update_profile',
  description: `Replaces the profile of the user of this run, which you always see: what matters about this user in every conversation, one fact a line, at most ${maxBytes} bytes. Send the whole profile, changed: a line that you leave out is forgotten.`,
  parameters: {
    type: 'object',
    properties: { content: { type: 'string', description: 'The whole profile.' } },
    required: ['content'],
    additionalProperties: false,
  },
});

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

/** The verbs that change nothing. */
export const readingVerbs: readonly MemoryVerb[] = ['recall', 'profile'];

/** Why a verb may not be used; null where it may. */
export function memoryFault(rights: MemoryRights, verb: MemoryVerb): string | null {
  if (rights === 'off') return 'the memory of this agent is off';
  if (rights === 'read' && !readingVerbs.includes(verb))
    return 'this agent may only read its memory';
  return null;
}

/** The tools that a model with these rights is offered; `profileBytes` where it keeps a profile of the run's user. */
export function memoryToolsIn(
  rights: MemoryRights,
  profileBytes: number | null = null,
): readonly MemoryTool[] {
  const tools = memoryTools
    .filter(({ name }) => memoryFault(rights, name) === null)
    .map((tool) => (rights === 'user' ? (ofUserAlone[tool.name] ?? tool) : tool));
  if (profileBytes === null || memoryFault(rights, 'update_profile') !== null) return tools;
  return [...tools, profileTool(profileBytes)];
}

/** `profile` reads the profile of the run's user, which a model sees without asking. */
export type MemoryVerb = (typeof memoryTools)[number]['name'] | 'update_profile' | 'profile';

export function isMemoryVerb(name: string): name is MemoryVerb {
  return (
    name === 'update_profile' ||
    name === 'profile' ||
    memoryTools.some((tool) => tool.name === name)
  );
}

/** The names of a verb's arguments. */
export function argumentsOf(verb: MemoryVerb): string[] {
  if (verb === 'update_profile') return ['content'];
  const tool = memoryTools.find(({ name }) => name === verb);
  return Object.keys(tool?.parameters.properties ?? {});
}
