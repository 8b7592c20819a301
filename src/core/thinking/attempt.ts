/** The thinking of one attempt: what its requests, its calls of models and its tools share. */

import type { Models, ToolMessage } from '../../adapters/models/model.ts';
import type { Agents } from '../agents/agents.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Context } from '../context/context.ts';
import type { Journal } from '../journal/journal.ts';
import type { RunPart } from '../journal/run-part.ts';
import type { RunMessage } from '../journal/run-steps.ts';
import type { JournalJob, StepError } from '../journal/step-rows.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import type { WaitRequest } from '../journal/waits.ts';
import type { RunMemory } from '../memories/run-memory.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import type { Compaction } from './compaction.ts';
import type { Estimates } from './estimates.ts';
import type { RestingModels } from './fallbacks.ts';
import type { Generation, ThinkingReport } from './generation.ts';
import type { GenerationParts, Generations } from './generations.ts';
import type { RunBounds } from './run-bounds.ts';
import type { ToolBox } from './tools.ts';

/** Reads a file of a SKILL.md skill, or says why it cannot be read. */
export type ReadSkillFile = (
  skill: string,
  path: unknown,
  offset: unknown,
) => Promise<{ text: string } | { error: string }>;

/** What the thinking of a process uses. */
export interface ThinkingParts extends GenerationParts {
  readonly context: Context;
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly models: Models;
  readonly readSkillFile: ReadSkillFile;
}

/** The end of a skill that ran as a tool, and its messages to the conversation. */
export type SkillResult = (
  | { readonly kind: 'completed'; readonly output: string }
  | ({ readonly kind: 'failed' } & StepError)
  | { readonly kind: 'stopped' }
) & { readonly messages?: readonly RunMessage[] };

/** A skill to run as a tool. */
export interface SkillCall {
  /** `category/version/name`. */
  readonly skill: string;
  /** JSON text that its schema allows. */
  readonly input: string;
  /** Whether the skill must not be started again when its executor dies: a person has approved one start. */
  readonly isOnce: boolean;
  /** Whether an earlier claim was lost or failed while the call was open, so it may have taken effect. */
  readonly wasInterrupted: boolean;
}

/** What thinking needs from its run. */
export interface RunSurroundings {
  readonly job: JournalJob;
  readonly journal: Journal;
  report(report: ThinkingReport): void;
  /** Yields the run's slot while it waits for a model; call the returned function to resume the slot. */
  yieldSlot(): () => void;
  memory(): RunMemory;
  /** Why a model may not call the skill: the caller's key no longer allows it, or a setting is missing. */
  refusalOf(skill: string): Promise<StepError | null>;
  /** Waits, within a scope. Rejects when the signal aborts, which it does when the run is unloaded. */
  wait(
    wanted: WaitRequest,
    scope: WaitScope,
    signal: AbortSignal,
  ): Promise<{ readonly value: unknown; readonly at: number }>;
  /** Runs a skill inside the run, within a scope. */
  runSkill(
    call: SkillCall,
    part: RunPart,
    signal: AbortSignal,
    scope: WaitScope,
  ): Promise<SkillResult>;
}

export interface ThinkingAttempt {
  readonly parts: ThinkingParts;
  readonly run: RunSurroundings;
  readonly generations: Generations;
  readonly bounds: RunBounds;
  readonly estimates: Estimates;
  readonly resting: RestingModels;
  /** Requests under way. */
  readonly underWay: Set<Promise<unknown>>;
  /** The model's last answer in the conversation's dialogue, null without one. */
  answer: string | null;
  /** The delay that a provider asks for when there is no further try, else null. */
  retryAfterMs: number | null;
}

/** A generation under way, in its attempt. */
export interface ActiveGeneration {
  readonly attempt: ThinkingAttempt;
  readonly generation: Generation;
  /** The part of the run that asks. */
  readonly part: RunPart;
  readonly box: ToolBox;
  readonly compaction: Compaction;
  /** The results of tools in the dialogue, by the id of their call. */
  readonly results: Map<string, ToolMessage>;
  /** The wait scope of the generation: it waits when all of its concurrent tools wait. */
  readonly scope: WaitScope;
}

/** Reports to the clients that follow the job. */
export function report({ run }: ThinkingAttempt, report: ThinkingReport): void {
  run.report(report);
}

export function log(attempt: ThinkingAttempt, message: string): void {
  report(attempt, { type: 'log', data: { message } });
}
