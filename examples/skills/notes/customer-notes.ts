/**
 * A skill with a memory, to copy: it is told about customers, and knows it at the next run. What it
 * remembers belongs to the agent that runs it; `GET /api/agents/default/memories` shows it.
 */
import { defineSkill } from 'skillwright';

const tag = 'customer-note';
/** Notes kept of one customer; older ones are forgotten. */
const notesMax = 20;

export default defineSkill({
  category: 'notes',
  name: 'customer-notes',
  version: 'v1.0',
  displayName: 'Customer notes',
  description: 'Remembers a note on a customer, and tells what is known of that customer.',
  parameters: {
    type: 'object',
    required: ['customer'],
    additionalProperties: false,
    properties: {
      customer: {
        type: 'string',
        pattern: '[\\p{L}\\p{N}]',
        maxLength: 100,
        description: 'Name of the customer.',
      },
      note: { type: 'string', minLength: 1, maxLength: 1000, description: 'What is new of them.' },
    },
  },
  output: {
    type: 'object',
    required: ['notes'],
    additionalProperties: false,
    properties: {
      notes: { type: 'array', items: { type: 'string' }, description: 'What is known.' },
    },
  },
  examples: [
    {
      input: { customer: 'Ada', note: 'prefers short answers' },
      output: { notes: ['Ada: prefers short answers'] },
    },
    { input: { customer: 'Nobody' }, output: { notes: [] } },
  ],

  async run({ customer, note }, { memory }) {
    const content = `${customer}: ${note}`;
    const known = await memory.recall({ query: customer, tag, limit: 200 });
    // A note that is told again is no news. The search finds words, so other customers may be among
    // what it finds: Ada, and what Bob says about Ada.
    const own = known.filter((one) => one.content.startsWith(`${customer}: `));
    if (note !== undefined && own.every((one) => one.content !== content)) {
      own.unshift(await memory.remember({ content, tag, metadata: { customer } }));
    }
    // A query finds the best first, which are not the newest.
    own.sort((a, b) => b.created_at.localeCompare(a.created_at));
    for (const { id } of own.splice(notesMax)) await memory.forget(id);
    return { notes: own.map((one) => one.content) };
  },
});
