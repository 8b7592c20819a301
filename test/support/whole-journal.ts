/** The journal of a claim with all kinds of steps, as a run and its thinking share it. */

import { readOperatorPrices } from '../../src/adapters/models/operator-prices.ts';
import { Prices } from '../../src/adapters/models/prices.ts';
import type { Context } from '../../src/core/context/context.ts';
import type { Conversations } from '../../src/core/conversations/conversations.ts';
import { Journal as RunJournal } from '../../src/core/journal/journal.ts';
import { PromptSettings } from '../../src/core/journal/prompts/prompt-settings.ts';
import type { JournalJob } from '../../src/core/journal/step-rows.ts';
import { Generations } from '../../src/core/thinking/generations.ts';
import { contextOf } from './context.ts';

/** In dollars for a million tokens: a token of the prompt of `a/model` costs a thousand nano-dollars, one of its answer two. */
const read = readOperatorPrices(
  JSON.stringify([{ model: 'a/model', from: '2020-01-01', input: 1, output: 2 }]),
);
const testPrices = 'prices' in read ? read.prices : [];

/** The generations of a claim, and its other steps. */
export class Journal extends Generations {
  readonly steps: RunJournal;

  constructor(context: Context, conversations: Conversations, job: JournalJob) {
    const steps = new RunJournal(context, job);
    const prices = new Prices(testPrices);
    super({ context, conversations, prices, prompts: new PromptSettings(context) }, steps);
    this.steps = steps;
  }
}

export function openWholeJournal(
  world: Pick<Context, 'database' | 'clock'> & { readonly conversations: Conversations },
  job: JournalJob,
  more: Partial<Context> = {},
): Journal {
  const { database, clock, conversations } = world;
  return new Journal(contextOf({ database, clock, ...more }), conversations, job);
}
