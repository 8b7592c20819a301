import { setTimeout as pause } from 'node:timers/promises';
import { defineSkill } from '../../src/author.ts';

export default defineSkill({
  category: 'killers',
  name: 'neighbour',
  version: 'v1.0',
  displayName: 'Neighbour',
  description: 'Waits for input and output ten times.',
  parameters: { type: 'object', required: ['ms'], properties: { ms: { type: 'number' } } },
  output: {},
  async run({ ms }, { signal }) {
    for (let i = 0; i < 10; i++) await pause(ms / 10, undefined, { signal });
    return 'done';
  },
});
