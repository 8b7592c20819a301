/** The calls of models at the pace of their providers: each waits for its moment, and its end teaches the pace. */
import { ModelError, type Usage } from '../../../adapters/models/model.ts';
import type { ProviderSettings } from '../../../adapters/models/providers.ts';
import { timestamp } from '../../../kernel/clock.ts';
import { providerWaitInWords } from '../../journal/provider-waits.ts';
import { ProviderBusyError } from '../../paces/busy-error.ts';
import type { PaceReason } from '../../paces/pace-rule.ts';
import { pacedProviderOf } from '../../paces/paced-provider.ts';
import { type ActiveGeneration, log, type ThinkingAttempt } from '../attempt.ts';
import { pause } from './pause.ts';

/** A turn waits so long with its run loaded; for longer the run is unloaded. */
const shortWaitMs = 10_000;
/** Where another model can be asked, a moment this near is waited for: the other one's answer would differ. */
const nearMs = 2_000;
/** Shorter waits are not told of. */
const toldMs = 1_000;
/** A moment that a call has not used for so long is lost. */
const unusedMs = 1_000;
/** Most answers have fewer tokens, so a call does not wait for a budget or a pace to have more. */
export const usualOutput = 1_024;

/**
 * How long a turn may wait with its run loaded. Not at all once it has waited unloaded, or an attempt has ended: a process that
 * dies again and again, or is replaced, would use up the attempts of a run that only waits.
 */
export function loadableMs({ attempt, generation: { patience } }: ActiveGeneration): number {
  if (patience.ms === 0) return shortWaitMs;
  if (patience.recorded > 0 || attempt.run.job.attempt > 1) return 0;
  return shortWaitMs - patience.loadedMs;
}

/** What clients read of a wait, without its end. */
export const waitName = (provider: string, reason: PaceReason) => `${provider}: ${reason}`;

/**
 * Waits for the moment of a call. Rejects with a ProviderBusyError where that is not near: another model may be asked
 * (`hasNext`), or the run has to wait for it. Returns what waits for another moment if this one has passed unused: calls
 * that something else has held up would begin all at once.
 */
export async function awaitMoment(
  active: ActiveGeneration,
  model: string,
  prompt: number,
  hasNext: boolean,
): Promise<() => Promise<void>> {
  const { clock } = active.attempt.parts.context;
  const hasWaited = active.generation.patience.rounds > 0;
  await waitForMoment(active, model, prompt, { hasNext, hasWaited });
  const at = clock.monotonic();
  return async () => {
    if (clock.monotonic() - at <= unusedMs) return;
    await waitForMoment(active, model, prompt, { hasNext, hasWaited: true });
  };
}

/** Whether waits of a turn count: a provider has refused it, or an attempt has ended. Moments of a mere pace are many, and near. */
const isStrained = ({ attempt, generation: { patience } }: ActiveGeneration) =>
  patience.refusal !== null || attempt.run.job.attempt > 1;

async function waitForMoment(
  active: ActiveGeneration,
  model: string,
  prompt: number,
  waiting: { readonly hasNext: boolean; readonly hasWaited: boolean },
): Promise<void> {
  const { attempt, generation } = active;
  const { parts, run } = attempt;
  const { clock } = parts.context;
  const { patience, output, call } = generation;
  const settings = await settingsOrNone(attempt, model);
  if (settings === null) return;
  const provider = pacedProviderOf(model, settings, run.job.organization_id);
  const tokens = bookedTokens(prompt, output);
  const { hasNext } = waiting;
  const counts = isStrained(active);
  const ownMs = counts ? Math.max(nearMs, loadableMs(active)) : shortWaitMs;
  const loadedMs = hasNext ? nearMs : ownMs;
  const latest = clock.now() + Math.max(loadedMs, hasNext ? 0 : patience.ms);
  const until = hasNext ? latest : (patience.until ?? latest);
  for (let { hasWaited } = waiting; ; hasWaited = true) {
    const now = clock.now();
    const asking = { tokens, until, hasWaited, aheadMs: loadedMs };
    const moment = await parts.paces.momentFor(provider, asking);
    const { kind, at, reason } = moment;
    const own = patience.refusal?.provider === provider.provider ? patience.refusal.said : '';
    const said = moment.said || own;
    const waitMs = at - now;
    if (reason !== null && (kind === 'late' || waitMs > loadedMs)) {
      const message = `The provider ${provider.provider} is not called for ${model} before ${timestamp(at)} (${reason})${said === '' ? '' : `. It said: ${said}`}`;
      throw new ProviderBusyError(message, reason, waitMs, kind !== 'late');
    }
    if (waitMs > 0) {
      if (reason !== null && waitMs >= toldMs) {
        log(attempt, `Waits for ${providerWaitInWords(waitName(provider.provider, reason), at)}`);
      }
      if (counts) patience.loadedMs += waitMs;
      await pause(waitMs, call.signal);
    }
    if (kind === 'moment' && (waitMs <= 0 || !(await parts.paces.isOver(moment, provider, now)))) {
      return;
    }
  }
}

/** The tokens for which the moment of a call is reserved. */
export const bookedTokens = (expected: number, output: number) =>
  expected + Math.min(output, usualOutput);

/** Makes a call, of which the pace of its provider learns; `booked` are the tokens for which its moment was taken. */
export function noted<Answer extends { readonly usage: Usage }>(
  { parts, run }: ThinkingAttempt,
  model: string,
  settings: ProviderSettings | undefined,
  booked: number,
  call: () => Promise<Answer>,
): Promise<Answer> {
  const provider = pacedProviderOf(model, settings, run.job.organization_id);
  return parts.paces.call(provider, booked, call);
}

/** Null where they cannot be read: then the call fails for that reason, on record. */
async function settingsOrNone({ parts, run }: ThinkingAttempt, model: string) {
  try {
    return await parts.credentials.settingsForModel(run.job.organization_id, model);
  } catch (error) {
    if (error instanceof ModelError) return null;
    throw error;
  }
}
