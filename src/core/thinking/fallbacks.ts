/**
 * Fallbacks: a turn asks the agent's own model, then its fallback models in order, while providers are unavailable
 * or limit the rate, or refuse a setting that others may take. A model that failed is asked last for a minute, so a
 * provider that is down does not cost its timeout in every turn.
 */
import { ModelError } from '../../adapters/models/model.ts';
import { type ActiveGeneration, log } from './attempt.ts';
import { hasTries, triesKey } from './call-retries.ts';
import type { Generation } from './generation.ts';
import { ThinkingError } from './thinking-error.ts';

/** How long a model that failed is asked last, at least. */
const restMs = 60_000;

/** By model: the monotonic time until which it is asked last, in milliseconds. */
export type RestingModels = Map<string, number>;

/**
 * Asks the models of a turn one after the other, until one has answered. Rejects with the ModelError of the turn
 * when none has, and with any other error at once.
 */
export async function askInOrder<Answer>(
  { attempt, generation }: Pick<ActiveGeneration, 'attempt' | 'generation'>,
  turn: number,
  ask: (model: string, hasNext: boolean) => Promise<Answer>,
): Promise<Answer> {
  const { resting, parts } = attempt;
  const { clock } = parts.context;
  const models = modelsInOrder(generation, turn, resting, clock.monotonic());
  const failures: ModelError[] = [];
  for (const [i, model] of models.entries()) {
    const next = models[i + 1];
    try {
      return await ask(model, next !== undefined);
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      if (!isPassedOn(error, model !== generation.call.model)) throw error;
      failures.push(error);
      rest(resting, model, error, clock.monotonic());
      if (next !== undefined) log(attempt, `${error.message}; ${next} is asked in its place`);
      else if (error.fault === 'credentials') log(attempt, `${error.message}; it is passed over`);
    }
  }
  throw failureOfAll(failures);
}

/** The models of a turn, in the order of asking. Models without tries left are included only if none has any. */
function modelsInOrder(
  { call, fallbacks, unanswered }: Pick<Generation, 'call' | 'fallbacks' | 'unanswered'>,
  turn: number,
  resting: RestingModels,
  now: number,
): string[] {
  const all = [...new Set([call.model, ...fallbacks])];
  const left = all.filter((model) => hasTries(unanswered, triesKey(turn, model)));
  const models = left.length > 0 ? left : all;
  const rests = (model: string) => (resting.get(model) ?? 0) > now;
  return [...models.filter((model) => !rests(model)), ...models.filter(rests)];
}

/** The error when a budget in dollars refuses a call because the price of its model is unknown. */
export function unpriced(message: string, isFallback: boolean): Error {
  // Skip a fallback like one without credentials: the agent's own model may answer later.
  return isFallback
    ? new ModelError('credentials', message)
    : new ThinkingError('budget_exceeded', message);
}

/** Moves a failed model to the end of the order for a while. */
function rest(
  resting: RestingModels,
  model: string,
  { retryAfterMs }: Pick<ModelError, 'retryAfterMs'>,
  now: number,
): void {
  resting.set(model, now + Math.max(restMs, retryAfterMs ?? 0));
}

/** Whether the next model is asked after this failure. */
function isPassedOn(
  { fault, isUnsupported }: Pick<ModelError, 'fault' | 'isUnsupported'>,
  isFallback: boolean,
): boolean {
  // A fallback without credentials must not hide that the agent's own model may answer later.
  return fault === 'unavailable' || isUnsupported || (isFallback && fault === 'credentials');
}

/** The error of a turn that no model answered: the one with the shortest retry delay. */
function failureOfAll(failures: readonly ModelError[]): ModelError {
  const unavailable = failures.filter(({ fault }) => fault === 'unavailable');
  const [first = failures[0]] = unavailable.toSorted(
    (a, b) => (a.retryAfterMs ?? 0) - (b.retryAfterMs ?? 0),
  );
  return first as ModelError;
}
