/**
 * `ctx.map`: a step for each item of a list, some of them at a time. The numbers of all items are reserved
 * at once, so item i is the same step in each replay, whatever the order in which items end.
 */
import { inputDigestOf } from '../../../kernel/input-digest.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import type { MapOptions, Recorded, StepRun } from '../../skills/definition.ts';
import { type Part, takeNumbers } from './part.ts';
import {
  checkFunction,
  executionFields,
  readExecution,
  readFields,
  readName,
  readWhole,
} from './step-arguments.ts';
import { refuseWithinStep } from './step-scope.ts';
import { executeOnce } from './steps.ts';

const itemsMax = 10_000;
const concurrencyDefault = 10;
const concurrencyMax = 500;

export async function takeSteps<Item, T>(
  part: Part,
  name: string,
  items: readonly Item[],
  run: (item: Item, step: StepRun, index: number) => T | Promise<T>,
  options: MapOptions = {},
): Promise<Recorded<T>[]> {
  refuseWithinStep('ctx.map');
  readName(name, 'the name of a map');
  const what = `the map ${JSON.stringify(name)}`;
  if (!Array.isArray(items)) throw permanentError(`the items of ${what} must be an array`);
  if (items.length > itemsMax) {
    throw permanentError(
      `${what} has ${items.length} items; at most ${itemsMax} are possible, so group them`,
    );
  }
  checkFunction(run, `the third argument of ${what}`);
  const fields = readFields(options, ['concurrency', ...executionFields], `the options of ${what}`);
  const { concurrency = concurrencyDefault } = fields;
  const limit = readWhole(concurrency, 1, concurrencyMax, `concurrency of ${what}`);
  const execution = readExecution(fields, what);
  // A copy, because the function may change the list.
  const taken = [...items];
  const first = takeNumbers(part, name, taken.length);
  const execute = (item: Item, index: number) => {
    const wanted = { name, nth: first + index, digest: digestOfItem(item) };
    return executeOnce(part, wanted, (step) => run(item, step, index), execution);
  };
  return (await inOrder(taken, limit, execute)) as Recorded<T>[];
}

/** At most `limit` at a time. Begins no more after a failure, and rejects once those under way have ended. */
async function inOrder<Item>(
  items: readonly Item[],
  limit: number,
  execute: (item: Item, index: number) => Promise<unknown>,
): Promise<unknown[]> {
  const results = new Array<unknown>(items.length);
  const entries = items.entries();
  let failure: { readonly error: unknown } | undefined;
  const work = async (): Promise<void> => {
    // The workers share the iterator, so each item is taken once.
    for (const [index, item] of entries) {
      try {
        results[index] = await execute(item, index);
      } catch (error) {
        failure ??= { error };
      }
      if (failure !== undefined) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  if (failure !== undefined) throw failure.error;
  return results;
}

/** Empty for an item that JSON cannot carry. */
function digestOfItem(item: unknown): string {
  try {
    return inputDigestOf(JSON.parse(JSON.stringify(item) ?? 'null'));
  } catch {
    return '';
  }
}
