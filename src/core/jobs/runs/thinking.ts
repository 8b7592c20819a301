/** The requests of runs to models, as runs see them. Jobs come before thinking, which uses the runs of jobs. */
import type { RunPart } from '../../journal/run-part.ts';
import type { WaitScope } from '../../journal/wait-scope.ts';
import type { Generated } from '../../skills/definition.ts';
import type { Attempt } from './attempt.ts';

/** How the runs of a process think. */
export interface Thinking {
  /** Begins the thinking of one attempt. */
  begin(attempt: Attempt): RunThinking;
}

/** The thinking of one attempt. */
export interface RunThinking {
  /** The model's last answer in the conversation's dialogue, null without one. */
  readonly answer: string | null;
  /** The delay that a provider asks for before a retry, else null. */
  readonly retryAfterMs: number | null;
  /** Answers a request of the run, or of a tool within it. */
  generate(
    payload: unknown,
    part: RunPart,
    signal: AbortSignal,
    scope: WaitScope,
  ): Promise<Generated>;
  /** Resolves when no request is under way. Abort their signals to end them. */
  ended(): Promise<void>;
}
