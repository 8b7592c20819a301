/** What one pass of a run knows. */
import type { createAnswerOrder } from '../../core/executors/answer-order.ts';
import type { ChildRuns } from '../../core/executors/child-runs.ts';
import type { Skills } from '../../core/executors/skill-calls.ts';
import type { ReplayOrder } from '../../core/jobs/replay-order.ts';
import type { RunMessage, RunSteps } from '../../core/journal/run-steps.ts';
import type { WaitScope } from '../../core/journal/wait-scope.ts';
import type { RunSettings } from '../../core/skills/settings.ts';
import type { AnswerDeps } from './answers.ts';
import type { ScriptedMemory } from './memory.ts';

/** The number of the run: a pass has one. */
export const runId = 1;

export interface PassDeps {
  readonly answers: AnswerDeps;
  readonly memory: ScriptedMemory;
  readonly skills: Skills;
  /** Reports of the run, of all its passes. */
  readonly reports: { readonly logs: unknown[]; readonly progress: unknown[] };
  /** The settings of a skill that the run calls; throws where one is missing. */
  settingsOf(skill: string): RunSettings | undefined;
}

export type PassEnd =
  | { readonly kind: 'completed'; readonly output: unknown; readonly said: readonly RunMessage[] }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly retryable: boolean;
      readonly stack: string | null;
    }
  | { readonly kind: 'waiting' };

export interface Pass {
  readonly deps: PassDeps;
  readonly replay: boolean;
  readonly ended: PromiseWithResolvers<PassEnd>;
  /** Aborts at the end of the pass. */
  readonly over: AbortController;
  readonly scope: WaitScope;
  readonly order: ReplayOrder;
  readonly steps: RunSteps;
  readonly said: RunMessage[];
  /** The scopes of open steps, by number. */
  readonly scopes: Map<number, WaitScope>;
  /** The open waits, by number: each is called when its wait has ended. */
  readonly waits: Map<number, () => void>;
  readonly runs: ChildRuns;
  readonly deliver: ReturnType<typeof createAnswerOrder>;
  asked: number;
}
