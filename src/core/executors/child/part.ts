/**
 * A run as its child process keeps it, and the parts of it: the run itself, and each skill that it calls.
 * A part numbers the steps of equal names in the order in which they are asked for.
 */
import type { Validate } from '../../../kernel/json-schema.ts';
import type { SkillDefinition } from '../../skills/definition.ts';
import type { RunSettings } from '../../skills/settings.ts';
import type { Outbox } from '../lines.ts';
import type { ContextTuple } from '../protocol.ts';
import { addSecrets, type Pieces } from '../redaction.ts';
import type { Progress } from './progress.ts';

/** A run as the child knows it. */
export interface Run {
  readonly id: number;
  readonly skill: string;
  readonly context: ContextTuple;
  isOver: boolean;
  /** Whether it is over because it waits: its code may not notice. */
  isSuspended: boolean;
  controller: AbortController | undefined;
  /** Set once the parent has asked the run to stop. */
  abortedWith: Error | undefined;
  logLines: number;
  messages: number;
  /** Questions to the parent, answered ones too. */
  asked: number;
  asks: Map<number, PromiseWithResolvers<unknown>> | undefined;
  /** The last transfer of a file; the next one begins after it. */
  transfer: Promise<unknown> | undefined;
  /** The time of `ctx.now()`: when the last step or wait that was answered was recorded. */
  now: number;
  /** What must not be shown of what the run was given; undefined for most runs. */
  secrets: readonly string[] | undefined;
  /** What it prints; undefined until it prints while it has secrets. */
  prints: Partial<Record<'stdout' | 'stderr', Pieces>> | undefined;
}

/** A part of a run: the run itself, or a skill that it calls. */
export interface Part {
  readonly run: Run;
  readonly platform: Platform;
  /** 0 for the run itself; a called skill is one deeper than its caller. */
  readonly depth: number;
  /** The number of the step that the call is, null for the run itself. */
  readonly step: number | null;
  /** Where in its job it is: the same in every attempt, and different for all parts of the job. */
  readonly path: string;
  /** The values of the settings of its skill, frozen. */
  readonly config: Readonly<Record<string, string>>;
  /** How often each name was taken; made at the first. */
  names: Map<string, number> | undefined;
  /** How many ids `ctx.uuid()` has made. */
  uuids: number;
}

/** The time of runs, which the tests of skills script. */
export interface RunClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after so many milliseconds; rejects when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/** A skill as the child runs it. */
export interface Runnable {
  readonly run: SkillDefinition['run'];
  readonly validateInput: Validate;
  readonly validateOutput: Validate;
}

export type Skills = Pick<ReadonlyMap<string, Runnable>, 'get'>;

/** What the runs of a child share. */
export interface Platform {
  readonly skills: Skills;
  readonly clock: RunClock;
  readonly outbox: Outbox;
  readonly progress: Progress;
}

/** A part whose code has asked for nothing. */
export function newPart(
  fields: Pick<Part, 'run' | 'platform' | 'depth' | 'step' | 'path'>,
  settings?: RunSettings,
): Part {
  return { ...fields, config: configOf(fields.run, settings), names: undefined, uuids: 0 };
}

const noConfig: Part['config'] = Object.freeze({});

function configOf(run: Run, settings: RunSettings | undefined): Part['config'] {
  if (settings === undefined) return noConfig;
  addSecrets(run, settings.secrets);
  return Object.freeze({ ...settings.values });
}

/** Takes the next `count` numbers of a name in a part or a step; returns the first, from 1. */
export function takeNumbers(within: Pick<Part, 'names'>, name: string, count = 1): number {
  within.names ??= new Map();
  const taken = within.names.get(name) ?? 0;
  within.names.set(name, taken + count);
  return taken + 1;
}

/** The answer to a step or wait tells when it was recorded; the logical time never goes back. */
export function noteTime(run: Run, at: unknown): void {
  if (typeof at === 'number' && at > run.now) run.now = at;
}
