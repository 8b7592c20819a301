/**
 * One attempt of a job in the executors, with its reports and requests until it ends: reports go to
 * the job's stream, requests to its journal and to the agent's memory and model. A skill that a model
 * calls as a tool runs the same way inside the attempt. Never settles a job.
 */

import { withDeadline } from '../../../kernel/with-deadline.ts';
import type { RunHandle, RunHandlers } from '../../executors/run.ts';
import { patiently } from '../../journal/claim-writes.ts';
import { unrequestedFault } from '../../journal/records.ts';
import { wholeRun } from '../../journal/run-part.ts';
import type { MemoryChanges } from '../../memories/record.ts';
import type { RunSettings } from '../../skills/settings.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import type { RunMessage } from '../settle-effects.ts';
import type { AttemptOutcome } from '../states.ts';
import { type RunOptions, skillOf } from '../turns/admission.ts';
import { type Attempt, newAttempt, type Runs, recordsOf } from './attempt.ts';
import { handlersOf } from './run-parts.ts';
import type { RunThinking } from './thinking.ts';

/** Time for the steps of a model to be recorded, once the run has ended. */
const lastStepsMs = 10_000;

/** Starts a run of a claimed job. `settings` are those of a skill that declares some. */
export function startRun(
  runs: Runs,
  job: ClaimedJob,
  { timeoutMs, alone }: RunOptions,
  settings?: RunSettings,
  confirmStart?: RunHandlers['confirmStart'],
): AttemptRun {
  const messages: RunMessage[] = [];
  const attempt = newAttempt(runs, job);
  attempt.endsAt = runs.context.clock.monotonic() + timeoutMs;
  const handlers = handlersOf({ attempt, part: wholeRun, messages });
  if (confirmStart !== undefined) handlers.confirmStart = confirmStart;
  const handle = runs.executors.run(
    {
      skill: skillOf(job),
      input: job.input,
      context: attempt.context,
      timeoutMs,
      ...(alone ? { alone } : {}),
      ...(settings === undefined ? {} : { settings }),
    },
    handlers,
  );
  attempt.handle = handle;
  return new AttemptRun(attempt, handle, messages);
}

/** An attempt under way. */
export class AttemptRun {
  readonly attempt: Attempt;
  readonly handle: RunHandle;
  readonly messages: readonly RunMessage[];

  constructor(attempt: Attempt, handle: RunHandle, messages: readonly RunMessage[]) {
    this.attempt = attempt;
    this.handle = handle;
    this.messages = messages;
  }

  /** Its calls of models; undefined when it made none. */
  get thinking(): RunThinking | undefined {
    return this.attempt.thinking;
  }

  /** Whether it has requested something that is on record, or is to be. */
  get openedJournal(): boolean {
    return this.attempt.journal !== undefined;
  }

  /** The waits, by the number of their step, whose ends the run may not have got. */
  openWaits(): number[] {
    return this.attempt.waits?.open() ?? [];
  }

  /** Answers those of its waits that have ended, and its calls that have got their places or have failed. */
  async answerWaits(): Promise<void> {
    await this.attempt.places?.answer();
    await this.attempt.waits?.checkWaits();
  }

  /** Its changes to the agent's memory; undefined when it made no memory request. */
  memoryChanges(): Promise<MemoryChanges> | undefined {
    return this.attempt.memory?.changes();
  }

  /** Resolves when all its reports are recorded; to be awaited once it has ended. Null where it made none. */
  ended(): Promise<void> | null {
    return isBare(this.attempt) ? null : awaitReports(this.attempt);
  }

  /** The outcome, or a failure where the run no longer fits what is on record of its job. */
  checked(outcome: AttemptOutcome): Promise<AttemptOutcome> {
    return withFault(this.attempt, outcome);
  }
}

/** Whether the run has made neither a report nor a request, as most runs have not. */
function isBare({ thinking, recording, waits, stream }: Attempt): boolean {
  return (
    thinking === undefined && recording === undefined && waits === undefined && stream === undefined
  );
}

async function awaitReports(attempt: Attempt): Promise<void> {
  const { thinking, recording, waits } = attempt;
  if (thinking !== undefined) await withDeadline(thinking.ended(), lastStepsMs);
  if (recording !== undefined && recording.size > 0)
    await withDeadline(Promise.all(recording), lastStepsMs);
  waits?.stop();
  // Read last, because the first report may be made during these waits.
  await attempt.stream?.flushed();
}

/**
 * The code must have requested everything that is on record when it returns. What a run that is unloaded has
 * got is on record before its job waits.
 */
async function withFault(attempt: Attempt, outcome: AttemptOutcome): Promise<AttemptOutcome> {
  if (outcome.kind === 'cancelled') return outcome;
  if (outcome.kind === 'waiting') await attempt.journal?.writeRest();
  let fault = attempt.fault;
  if (fault === undefined && outcome.kind === 'completed' && attempt.job.epoch > 1) {
    fault = unrequestedFault(await patiently(() => recordsOf(attempt)));
  }
  if (fault === undefined) return outcome;
  return { kind: 'failed', code: fault.code, message: fault.message, retryable: false };
}
