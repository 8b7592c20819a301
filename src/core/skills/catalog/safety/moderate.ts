/**
 * A guard that refuses texts by a list of words, or by a policy that the agent's model applies. Words are looked for first: they
 * cost nothing. A long text is judged in pieces.
 */
import { defineSkill, SkillError } from '../../definition.ts';
import { cut } from '../_support/clean-text.ts';
import { inParallel } from '../_support/in-parallel.ts';
import { withoutEscapes } from '../_support/json-escapes.ts';
import { quote } from '../_support/quoting.ts';
import { objectWith, textWith } from '../_support/schemas.ts';
import { pieceLengthMax, splitText } from '../_support/splitting.ts';
import { guarded, verdict } from '../_support/verdicts.ts';
import { findListed } from '../_support/word-lists.ts';

const usualPolicy =
  'Refuse texts that threaten, harass or demean people, that encourage violence, terror, crime, suicide or harming oneself, ' +
  'that sexualize minors, or that are sexually explicit. Texts that report, ask about or warn of such things are allowed.';
const reasonMax = 300;

const parameters = objectWith(['text'], {
  ...guarded,
  words: {
    type: 'array',
    maxItems: 1_000,
    items: { type: 'string', maxLength: 100, pattern: '\\S' },
    description:
      'Words and phrases that no text may have, whole words in any case; a star at the end stands for any end of a word.',
  },
  policy: textWith(
    8_000,
    "What is refused and what is allowed, for the agent's model. Without words a usual policy when left out; with words alone no model is asked.",
  ),
});

/** The model's answer. */
interface Judgement {
  readonly reason: string;
  readonly is_allowed: boolean;
}
const judgement = objectWith('all', {
  reason: { type: 'string' },
  is_allowed: { type: 'boolean' },
});

export default defineSkill({
  category: 'safety',
  name: 'moderate',
  version: 'v1.0',
  displayName: 'Moderate',
  description:
    'Says whether a text may pass, by words that it must not have and by a policy that the model applies. ' +
    'A guard of agents.',
  parameters,
  output: verdict,
  timeoutMs: 120_000,
  examples: [
    {
      input: { text: 'Buy now: a fabulous miracle cure!', words: ['miracle cur*'] },
      output: { action: 'refuse', reason: 'It has a word that is not allowed.' },
    },
    { input: { text: 'When do you open?', policy: 'Refuse what is not about our shop.' } },
  ],

  async run({ text, words, policy, on }, ctx) {
    const isListed = (some: string) => words !== undefined && findListed(some, words) !== null;
    if (isListed(text) || isListed(withoutEscapes(text))) {
      return refusal('It has a word that is not allowed.');
    }
    const applied = policy ?? (words === undefined ? usualPolicy : undefined);
    if (applied === undefined || text.trim() === '') return { action: 'pass' as const };
    const judged = await inParallel(splitText(text, pieceLengthMax), ctx.signal, async (piece) => {
      const { request } = quote({
        instructions: [
          `You moderate: you judge ${names[on ?? 'message']} by a policy and do nothing else.`,
          `The policy: ${applied}`,
          'Say in one sentence why, without quoting the text, then whether it is allowed.',
        ],
        task: 'Judge this text by the policy.',
        text: piece,
      });
      const { output } = await ctx.generate({ ...request, schema: judgement, temperature: 0 });
      return judgementOf(output);
    });
    const refused = judged.find(({ is_allowed }) => !is_allowed);
    return refused === undefined ? { action: 'pass' as const } : refusal(refused.reason);
  },
});

const names = {
  message: 'the message of a user',
  tool_result: 'the result of a tool',
  answer: 'the answer of an assistant',
};

function refusal(reason: string) {
  return { action: 'refuse' as const, reason: cut(reason, reasonMax) };
}

function judgementOf(output: unknown): Judgement {
  const { is_allowed, reason } = output as Partial<Judgement>;
  if (typeof is_allowed === 'boolean' && typeof reason === 'string') return { is_allowed, reason };
  throw new SkillError('The model gave no judgement', { retryable: false });
}
