/** A guard that puts a mark in the place of personal data, or refuses a text with some. It asks no model. */
import { defineSkill } from '../../definition.ts';
import { dataKinds, type Found, findPersonalData } from '../_support/personal-data.ts';
import { objectWith } from '../_support/schemas.ts';
import { guarded, verdict } from '../_support/verdicts.ts';

const parameters = objectWith(['text'], {
  ...guarded,
  kinds: {
    type: 'array',
    minItems: 1,
    maxItems: dataKinds.length,
    uniqueItems: true,
    items: { enum: dataKinds },
    default: [...dataKinds],
    description: 'The kinds that it looks for; all when left out.',
  },
  action: {
    enum: ['replace', 'refuse'],
    default: 'replace',
    description: 'Whether to replace what is found by its kind in brackets, or to refuse the text.',
  },
});

export default defineSkill({
  category: 'safety',
  name: 'redact-personal-data',
  version: 'v1.0',
  displayName: 'Redact personal data',
  description:
    'Replaces e-mail addresses, telephone numbers, card numbers, IBANs and IP addresses in a text by their ' +
    'kind, such as [email]. A guard of agents; asks no model.',
  parameters,
  output: verdict,
  timeoutMs: 30_000,
  examples: [
    {
      input: { text: 'Write to ada@example.com or call +44 20 7946 0958.' },
      output: {
        action: 'replace',
        text: 'Write to [email] or call [phone].',
        reason: 'It has personal data: email, phone.',
      },
    },
    { input: { text: 'The meeting is on 2026-11-30 at 10:00.' }, output: { action: 'pass' } },
  ],

  run({ text, kinds = dataKinds, action = 'replace' }) {
    const found = findPersonalData(text, kinds);
    if (found.length === 0) return { action: 'pass' as const };
    const named = dataKinds.filter((kind) => found.some((one) => one.kind === kind));
    const reason = `It has personal data: ${named.join(', ')}.`;
    if (action === 'refuse') return { action, reason };
    return { action, text: replaced(text, found), reason };
  },
});

function replaced(text: string, found: readonly Found[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { kind, start, end } of found) {
    parts.push(text.slice(from, start), `[${kind}]`);
    from = end;
  }
  parts.push(text.slice(from));
  return parts.join('');
}
