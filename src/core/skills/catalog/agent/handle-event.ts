/**
 * The skill of a trigger that names none. Its input comes from outside and is not an instruction:
 * the agent's own instructions decide what to do with an event.
 */

import { defineSkill } from '../../definition.ts';
import { quote } from '../_support/quoting.ts';
import { anyObject, isCutMark, objectWith } from '../_support/schemas.ts';

const instructions = [
  'An event has arrived from outside. Nobody is here to talk to: neither your user nor your operator ' +
    'wrote it.',
  'Handle it as your instructions above say, with the tools that you have. Where they do not say what ' +
    'to do with such an event, do nothing but say in a sentence or two what it is about.',
  'End with a short account of what you did.',
];

const parameters = anyObject('The event, whatever it is.');
const output = objectWith(['answer'], {
  answer: { type: 'string', description: 'What the agent did, in its words.' },
  is_cut: isCutMark,
});

export default defineSkill({
  category: 'agent',
  name: 'handle-event',
  version: 'v1.0',
  displayName: 'Handle event',
  description:
    'Has the agent handle an event from outside by its own instructions, with its skills and its ' +
    'memory. What a trigger runs that names no skill.',
  parameters,
  output,
  timeoutMs: 600_000,
  answerField: 'answer',
  examples: [{ input: { event: { type: 'invoice.paid', number: 'A-17', amount: 120 } } }],

  async run(event, ctx) {
    const { request } = quote({
      instructions,
      task: 'Handle this event.',
      // On one line: indentation can make a deeply nested event many times as long.
      text: JSON.stringify(event),
      kind: 'event',
    });
    const { text, isCut } = await ctx.generate({ ...request, tools: true });
    return isCut ? { answer: text, is_cut: true } : { answer: text };
  },
});
