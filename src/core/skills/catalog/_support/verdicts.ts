/** What the catalog's guards are given, and their verdicts (docs/guards.md). */
import { objectWith, textWith } from './schemas.ts';

const textMax = 1_000_000;

/** The fields that a platform fills of a guard's input. */
export const guarded = {
  text: { type: 'string', maxLength: textMax, description: 'The text to judge.' },
  on: {
    enum: ['message', 'tool_result', 'answer'],
    description:
      "What the text is: the user's message, a tool's result or the model's answer; an agent's guard is told.",
  },
  tool: textWith(200, 'The tool whose result it is.'),
} as const;

export const verdict = objectWith(['action'], {
  action: {
    enum: ['pass', 'replace', 'refuse'],
    description: 'Whether the text may pass, is replaced by another one, or is refused.',
  },
  text: { type: 'string', description: 'The text in its place; with replace only.' },
  reason: {
    type: 'string',
    description: 'Why it is replaced or refused, for users and the model.',
  },
});
