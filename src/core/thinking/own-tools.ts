/** The definitions of the platform's own tools, beside those of the agent's memory. */
import type { ToolOffer } from '../../adapters/models/model.ts';

/** Characters of one answer of `read_result`: without a length, and at most. */
export const readDefault = 20_000;
export const readMax = 40_000;
/** Tools in one answer of `find_tools`: without a limit, and at most. */
export const findDefault = 8;
export const findMax = 20;
/** Categories that the description of `find_tools` names. */
const categoriesMax = 40;

export const fileOffer: ToolOffer = {
  name: 'read_file',
  description: "Reads a file of this skill's folder.",
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the folder.' },
      offset: { type: 'integer', minimum: 0, description: 'Bytes to pass over.' },
    },
    required: ['path'],
    additionalProperties: false,
  },
};

export const resultOffer: ToolOffer = {
  name: 'read_result',
  description:
    'Reads the result of an earlier tool call of this conversation, also the part that was left out where it was too long.',
  parameters: {
    type: 'object',
    properties: {
      call_id: {
        type: 'string',
        description: 'The id of the call, as the note in its result says.',
      },
      offset: { type: 'integer', minimum: 0, description: 'Characters to pass over.' },
      length: { type: 'integer', minimum: 1, maximum: readMax, description: 'Characters to read.' },
    },
    required: ['call_id'],
    additionalProperties: false,
  },
};

const findName = 'find_tools';

export const isFindTool = (name: string) => name === findName;

/** `counts`: the number of tools of each category. */
export function findOffer(counts: ReadonlyMap<string, number>): ToolOffer {
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const named = [...counts].slice(0, categoriesMax).map(([name, count]) => `${name} (${count})`);
  const more = counts.size > categoriesMax ? ' and others' : '';
  return {
    name: findName,
    description: `Finds tools by what they do. There are ${all} more tools than you see, of: ${named.join(', ')}${more}. Those that are found can be called from then on.`,
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool is to do, in a few words.' },
        limit: { type: 'integer', minimum: 1, maximum: findMax },
      },
      required: ['query'],
      additionalProperties: false,
    },
  };
}
