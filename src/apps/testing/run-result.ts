/** What a test gets of a run that has ended. */
import type { SkillDefinition } from '../../core/skills/definition.ts';
import { type Row, resultOf, type ScriptedJournal } from './journal.ts';
import { viewOf } from './memory.ts';
import type { PassEnd } from './pass-state.ts';
import type { RunError, RunStep, SkillRun } from './types.ts';
import type { World } from './world.ts';

export type Failed = Extract<PassEnd, { kind: 'failed' }>;
export type Ended = Exclude<PassEnd, { kind: 'waiting' }>;

export interface Execution {
  readonly world: World;
  readonly definition: SkillDefinition;
  readonly journal: ScriptedJournal;
  readonly reports: {
    readonly logs: SkillRun['logs'][number][];
    readonly progress: SkillRun['progress'][number][];
  };
  readonly context: readonly [string, string, string, string];
}

export function resultFrom({ world, journal, reports }: Execution, end: Ended): SkillRun {
  const error = end.kind === 'failed' ? errorOf(end) : undefined;
  const isCancelled = error?.code === 'cancelled';
  const messages = end.kind === 'completed' ? end.said : [];
  return {
    status: error === undefined ? 'completed' : isCancelled ? 'cancelled' : 'failed',
    output: end.kind === 'completed' ? end.output : undefined,
    error,
    logs: reports.logs,
    progress: reports.progress,
    messages: messages.map(({ role, content }) => ({ role, content })),
    steps: journal.rows.map(stepOf),
    requests: world.script.requests,
    toolCalls: world.script.toolCalls,
    memory: viewOf(world.memories),
    now: new Date(journal.clock.now()),
    attempts: journal.attempt,
  };
}

function errorOf({ code, message, retryable, stack }: Failed): RunError {
  const error = { code, message, retryable };
  Object.defineProperty(error, 'stack', { value: stack ?? undefined, enumerable: false });
  return error;
}

function stepOf(row: Row): RunStep {
  const { name, kind, status, error, result } = row;
  const isCode = kind === 'step' || kind === 'skill';
  const { output } = JSON.parse(isCode && result !== null ? result : '{}') as { output?: unknown };
  const ended = isCode || result === null ? { value: output } : resultOf(row);
  return {
    name,
    kind: kind as RunStep['kind'],
    status,
    output: ('value' in ended ? ended.value : null) ?? null,
    error: error === null ? null : { code: error.code, message: error.message },
  };
}
