import { defineSkill } from '../../definition.ts';
import { objectWith } from '../_support/schemas.ts';

export default defineSkill({
  category: 'util',
  name: 'echo',
  version: 'v1.0',
  displayName: 'Echo',
  description: 'Returns the text that it is given. For a first try, and to measure the platform.',
  parameters: objectWith('all', { text: { type: 'string', description: 'Text to return.' } }),
  output: objectWith('all', { text: { type: 'string', description: 'The same text.' } }),
  examples: [{ input: { text: 'hello' }, output: { text: 'hello' } }],

  run: ({ text }) => ({ text }),
});
