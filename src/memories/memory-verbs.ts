/**
 * What a run can ask of its agent's memory, in its code and by the tools of its model: the verbs, their
 * arguments and limits, said once.
 */
/** Memories in the answer to one `recall`: without a limit, and at most. */
export const recallDefault = 50;
export const recallMax = 200;

/** The verbs as a model is offered them. */
export const memoryTools = [
  {
    name: 'remember',
    description: 'Keeps something for later conversations.',
    parameters: {
      type: 'object',
      properties: {
        content: { type: 'string', description: 'What to remember, complete in itself.' },
        tag: { type: 'string', description: 'Kind of memory, such as preference or fact.' },
        metadata: { type: 'object' },
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

export type MemoryVerb = (typeof memoryTools)[number]['name'];

export function isMemoryVerb(name: string): name is MemoryVerb {
  return memoryTools.some((tool) => tool.name === name);
}

/** The names of a verb's arguments. */
export function argumentsOf(verb: MemoryVerb): string[] {
  const tool = memoryTools.find(({ name }) => name === verb);
  return Object.keys(tool?.parameters.properties ?? {});
}
