import { defineSkill } from '../../definition.ts';

interface Text {
  readonly text: string;
}

export default defineSkill<Text, Text>({
  category: 'util',
  name: 'echo',
  version: 'v1.0',
  displayName: 'Echo',
  description: 'Returns the text that it is given. For a first try, and to measure the platform.',
  parameters: {
    type: 'object',
    required: ['text'],
    additionalProperties: false,
    properties: { text: { type: 'string', description: 'Text to return.' } },
  },
  output: {
    type: 'object',
    required: ['text'],
    additionalProperties: false,
    properties: { text: { type: 'string', description: 'The same text.' } },
  },
  examples: [{ input: { text: 'hello' }, output: { text: 'hello' } }],

  run: ({ text }) => ({ text }),
});
