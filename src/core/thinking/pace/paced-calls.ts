/** The calls of models at the pace of their providers: each waits for its moment, and its end teaches the pace. */
import { ModelError, type Usage } from '../../../adapters/models/model.ts';
import type { ProviderSettings } from '../../../adapters/models/providers.ts';
import { timestamp } from '../../../kernel/clock.ts';
import { providerWaitInWords } from '../../journal/provider-waits.ts';
import { type ActiveGeneration, log, type ThinkingAttempt } from '../attempt.ts';
import { ProviderBusyError } from './busy-error.ts';
import type { PaceReason } from './pace-rule.ts';
import { pacedProviderOf } from './paced-provider.ts';
import { pause } from './pause.ts';

/** A call waits so long with its run loaded; for longer ones the run is unloaded. */
export const shortWaitMs = 10_000;
/** Where another model can be asked, a moment this near is waited for: the other one's answer would differ. */
const nearMs = 2_000;
/**
 * Moments further ahead are reserved for no call: runs that are cancelled would leave them unused, and those of one
 * organization would hold up all others. Such a call asks again after this time.
 */
export const reservedMaxMs = 60_000;
/** Shorter waits are not told of. */
const toldMs = 1_000;
/** A moment that a call has not used for so long is lost. */
const unusedMs = 1_000;
/** A moment that was kept for a run counts for so long: to load it takes a while. */
const lateMaxMs = 15_000;
/** Most answers have fewer tokens, so a call does not wait for a budget or a pace to have more. */
export const usualOutput = 1_024;

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
  await waitForMoment(active, model, prompt, hasNext);
  const at = clock.monotonic();
  return async () => {
    if (clock.monotonic() - at > unusedMs) await waitForMoment(active, model, prompt, hasNext);
  };
}

async function waitForMoment(
  { attempt, generation }: ActiveGeneration,
  model: string,
  prompt: number,
  hasNext: boolean,
): Promise<void> {
  const { parts, run } = attempt;
  const { clock } = parts.context;
  const { patience, output, call } = generation;
  const settings = await settingsOrNone(attempt, model);
  if (settings === null) return;
  const provider = pacedProviderOf(model, settings, run.job.organization_id);
  const { moment: kept } = patience;
  patience.moment = null;
  const isKept = kept?.provider === provider.provider && clock.now() - kept.at < lateMaxMs;
  if (isKept && !(await parts.paces.isOver({ isKept }, provider, 0))) return;
  const tokens = bookedTokens(prompt, output);
  for (;;) {
    const now = clock.now();
    const until = hasNext
      ? now + nearMs
      : Math.min(patience.until ?? now + Math.max(shortWaitMs, patience.ms), now + reservedMaxMs);
    const moment = await parts.paces.momentFor(provider, tokens, until);
    const { at, reason } = moment;
    const own = patience.refusal?.provider === provider.provider ? patience.refusal.said : '';
    const said = moment.said || own;
    const waitMs = at - now;
    if (reason !== null && waitMs > (hasNext ? nearMs : shortWaitMs)) {
      const message = `The provider ${provider.provider} is not called for ${model} before ${timestamp(at)} (${reason})${said === '' ? '' : `. It said: ${said}`}`;
      throw new ProviderBusyError(message, reason, waitMs, at <= until);
    }
    if (waitMs <= 0) return;
    if (reason !== null && waitMs >= toldMs) {
      log(attempt, `Waits for ${providerWaitInWords(waitName(provider.provider, reason), at)}`);
    }
    await pause(waitMs, call.signal);
    if (!(await parts.paces.isOver(moment, provider, now))) return;
  }
}

/** The tokens for which the moment of a call is reserved. */
export const bookedTokens = (expected: number, output: number) =>
  expected + Math.min(output, usualOutput);

/** Makes a call, and notes how the provider served it; `booked` are the tokens for which its moment was reserved. */
export async function noted<Answer extends { readonly usage: Usage }>(
  { parts, run }: ThinkingAttempt,
  model: string,
  settings: ProviderSettings | undefined,
  booked: number,
  call: () => Promise<Answer>,
): Promise<Answer> {
  const { paces, context } = parts;
  const begun = paces.begin(pacedProviderOf(model, settings, run.job.organization_id));
  const warn = (err: unknown) =>
    context.log.warn({ err, job_id: run.job.id, model }, 'the pace of a provider is not recorded');
  try {
    const answer = await call();
    const { prompt, completion } = answer.usage;
    const isReported = prompt !== null && completion !== null;
    void paces.answered(begun, isReported ? prompt + completion - booked : 0).catch(warn);
    return answer;
  } catch (error) {
    if (error instanceof ModelError && error.fault === 'unavailable') {
      // Before the next call asks for its moment.
      await paces.failed(begun, error).catch(warn);
    } else if (error instanceof ModelError && error.fault !== 'aborted') {
      void paces.answered(begun).catch(warn);
    }
    throw error;
  }
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
