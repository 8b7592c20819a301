/**
 * Fallbacks: a turn asks the agent's own model, then its fallback models in order, while providers are unavailable
 * or limit the rate, or refuse what others may take: the model, the account, a setting, the length. A model that failed is
 * asked last for a minute, so a provider that is down does not cost its timeout in every turn.
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

/** A model's failure. */
interface Failure {
  readonly model: string;
  readonly error: Error;
}

interface ModelFailure extends Failure {
  readonly error: ModelError;
}

/** A model may not be asked for a turn again, because each of its calls may have been charged. */
export class OutOfTriesError extends ThinkingError {
  constructor(message: string) {
    super('upstream_unavailable', message);
  }
}

/**
 * Asks the models of a turn one after the other, until one has answered. Rejects with a ModelError that says what each
 * of them said when none has, and with any other error at once. A request that is too long for a model is another
 * model's only where `passesLengthOn`; else the caller makes it shorter.
 */
export async function askInOrder<Answer>(
  { attempt, generation }: Pick<ActiveGeneration, 'attempt' | 'generation'>,
  { turn, passesLengthOn }: { readonly turn: number; readonly passesLengthOn: boolean },
  ask: (model: string, hasNext: boolean) => Promise<Answer>,
): Promise<Answer> {
  const { resting, parts } = attempt;
  const { clock } = parts.context;
  const models = modelsInOrder(generation, turn, resting, clock.monotonic());
  const failures: ModelFailure[] = [];
  for (const [i, model] of models.entries()) {
    const next = models[i + 1];
    try {
      return await ask(model, next !== undefined);
    } catch (error) {
      if (error instanceof OutOfTriesError) {
        throw new OutOfTriesError(saidByAll([...failures, { model, error }]));
      }
      if (!(error instanceof ModelError)) throw error;
      if (error.refuses === 'length' && !passesLengthOn) throw error;
      if (error.fault === 'aborted') throw error;
      failures.push({ model, error });
      if (!isPassedOn(error, model !== generation.call.model)) throw withAll(failures, error);
      rest(resting, model, error, clock.monotonic());
      if (next !== undefined) log(attempt, `${error.message}; ${next} is asked in its place`);
      else if (error.fault === 'credentials') log(attempt, `${error.message}; it is passed over`);
    }
  }
  const main = mainFailure(failures, generation.call.model);
  generation.patience.model = main.model;
  throw withAll(failures, main.error);
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
function isPassedOn(error: ModelError, isFallback: boolean): boolean {
  const { fault, refuses, isDeclined } = error;
  if (isDeclined) return false;
  if (fault === 'unavailable' || refuses !== null) return true;
  // A fallback that is refused must not hide that the agent's own model may answer later.
  return isFallback && (fault === 'credentials' || fault === 'refused');
}

/** The failure that decides what becomes of a turn which no model answered: the one with the shortest retry delay. */
function mainFailure(failures: readonly ModelFailure[], own: string): ModelFailure {
  const unavailable = failures.filter(({ error }) => error.fault === 'unavailable');
  const [first = failures.find(({ model }) => model === own) ?? failures[0]] = unavailable.toSorted(
    (a, b) => (a.error.retryAfterMs ?? 0) - (b.error.retryAfterMs ?? 0),
  );
  return first as ModelFailure;
}

/** The error, with the words of all models. */
function withAll(failures: readonly Failure[], error: ModelError): ModelError {
  if (failures.length === 1) return error;
  const { fault, isDeclined, retryAfterMs, isRateLimited } = error;
  const kept = { isDeclined, retryAfterMs, isRateLimited };
  return new ModelError(fault, saidByAll(failures), { ...kept, cause: error });
}

function saidByAll(failures: readonly Failure[]): string {
  if (failures.length === 1) return failures[0]?.error.message ?? '';
  const said = failures.map(({ model, error }) => `${model}: ${error.message}`);
  return `No model answered. ${said.join('. ')}`;
}
