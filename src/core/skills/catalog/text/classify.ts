/**
 * Classifies a text by the given labels. The model answers by a schema that allows only these labels. It
 * writes the reason before the label, because the reason guides its choice. A long text is classified by
 * its digest.
 */

import { defineSkill, type JsonSchema, type SkillContext, SkillError } from '../../definition.ts';
import { type Digest, digestOf } from '../_support/digest.ts';
import { quote } from '../_support/quoting.ts';
import { flag, objectWith, type Static, textWith } from '../_support/schemas.ts';

/** The model's answer. */
interface Choice {
  readonly reason: string;
  readonly label: string;
  readonly further_labels?: readonly string[];
}

const labelName = { type: 'string', maxLength: 100, pattern: '\\S' } as const;
const labelWithDescription = objectWith(['label'], {
  label: { ...labelName, description: 'The label.' },
  description: { type: 'string', maxLength: 500, description: 'When it fits.' },
});
type Label = Static<typeof labelWithDescription>;

const parameters = objectWith(['text', 'labels'], {
  text: textWith(1_000_000, 'Text to classify.'),
  labels: {
    type: 'array',
    minItems: 2,
    maxItems: 100,
    description: 'Labels to choose from, all different; descriptions help the model to choose.',
    items: { anyOf: [labelName, labelWithDescription] },
  },
  multiple: flag('Whether several labels may fit; `labels` then has all that do.'),
  instructions: textWith(4_000, 'How to decide.'),
});
const output = objectWith(['label'], {
  label: { type: 'string', description: 'The label that fits best.' },
  labels: {
    type: 'array',
    items: { type: 'string' },
    description: 'All labels that fit, the best first; with `multiple` only.',
  },
  reason: { type: 'string', description: 'Why, in a sentence.' },
});
type Input = Static<typeof parameters>;

export default defineSkill({
  category: 'text',
  name: 'classify',
  version: 'v1.0',
  displayName: 'Classify',
  description:
    'Says which of some labels fits a text best, or which ones fit it, and why. Never answers with ' +
    'another label; give one such as "other" where none may fit.',
  parameters,
  output,
  timeoutMs: 600_000,
  examples: [
    {
      input: {
        text: 'The parcel came, but the lamp in it is broken. I would like my money back.',
        labels: [
          { label: 'refund', description: 'Wants money back.' },
          { label: 'delivery', description: 'Asks where something is.' },
          'other',
        ],
      },
    },
  ],

  async run(input, ctx) {
    const labels = input.labels.map((one) => (typeof one === 'string' ? { label: one } : one));
    assertDistinct(labels);
    const digest = await digestOf(input.text, {
      ctx,
      instructions: [
        'You take notes on a part of a longer text, by which all of it will be classified. Note in at ' +
          'most 150 words what speaks for and against the labels.',
        ...rules(labels, input),
      ],
    });
    const { reason, label, further_labels: further } = await choose(digest, labels, input, ctx);
    if (further === undefined) return { label, reason };
    return { label, labels: [...new Set([label, ...further])], reason };
  },
});

async function choose(
  digest: Digest,
  labels: readonly Label[],
  input: Input,
  ctx: SkillContext,
): Promise<Choice> {
  const names = labels.map(({ label }) => label);
  const { request } = quote({
    instructions: [
      'You classify a text.',
      ...(digest.parts > 1 ? ['Of the text you have notes on all parts, in their order.'] : []),
      ...rules(labels, input),
      'Say why in one sentence, then give the label that fits best' +
        (input.multiple === true ? ', then the further labels that fit too, if any.' : '.'),
    ],
    task: 'Classify this text.',
    text: digest.text,
  });
  const schema = schemaOf(names, input.multiple === true);
  const { output } = await ctx.generate({ ...request, schema, temperature: 0 });
  const choice = output as Choice;
  const strange = [choice.label, ...(choice.further_labels ?? [])].find(
    (label) => !names.includes(label),
  );
  if (strange === undefined) return choice;
  const message = `The model chose ${JSON.stringify(strange)}, which is none of the labels`;
  throw new SkillError(message, { retryable: false });
}

/** Uses only keywords that every provider accepts; the other rules are checked afterwards. */
function schemaOf(names: readonly string[], multiple: boolean): JsonSchema {
  const label = { type: 'string', enum: names };
  return objectWith('all', {
    reason: { type: 'string' },
    label,
    ...(multiple ? { further_labels: { type: 'array', items: label } } : {}),
  });
}

function rules(labels: readonly Label[], { instructions }: Input): string[] {
  return [
    'The labels, as JSON:',
    ...labels.map(({ label, description }) => JSON.stringify({ label, description })),
    ...(instructions === undefined ? [] : [`How to decide: ${instructions}`]),
  ];
}

function assertDistinct(labels: readonly Label[]): void {
  const names = labels.map(({ label }) => label);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice === undefined) return;
  const message = `The label ${JSON.stringify(twice)} comes twice; labels have to be different`;
  throw new SkillError(message, { retryable: false });
}
