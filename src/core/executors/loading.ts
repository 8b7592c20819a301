/**
 * A child's start, from the messages of the child: which module it is loading, which skills it found, that
 * it is ready or why it is not. Promises a sentence for every way in which a start can fail, with
 * the file's name if it is known. Bounds the time of each file, and logs the slow ones.
 */
import { dirname } from 'node:path';
import { bind } from '../../kernel/bind.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import { cleanText } from '../../kernel/text.ts';
import { skillFault } from '../skills/fields.ts';
import { type LeftOutSkill, SkillLoadError } from '../skills/sources/load-error.ts';
import type { LoadedFile } from '../skills/sources/load-plan.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { errorCharsMax } from './limits.ts';
import type { ChildMessage } from './protocol.ts';

export type StartMessage = Extract<
  ChildMessage,
  [
    'loading' | 'skill' | 'files' | 'ready' | 'refused' | 'unloaded' | 'left-out' | 'failing',
    ...unknown[],
  ]
>;

/** Milliseconds after which a file counts as slow. */
const slowMs = 2_000;
/** More files than a directory of skills has; a child that reports more is garbled. */
const leftOutMax = 10_000;

/** What was found so far; of the first child only. */
export interface FoundSkills {
  readonly skills: readonly LoadedSkill[];
  readonly leftOut: readonly LeftOutSkill[];
  /** What each file of skills that a plan let it load has read; none of a load without a plan. */
  readonly files: ReadonlyMap<string, readonly LoadedFile[]>;
  /** Files whose last version that loaded no longer loads either. */
  readonly failing: ReadonlySet<string>;
}

export type Loading = ReturnType<typeof createLoading>;

type Step = 'goes on' | 'ready' | 'refused' | 'garbled';

export interface LoadingDeps {
  readonly load: {
    readonly isFirst: boolean;
    /** Its author is shown what does not load, so that the log need not. */
    readonly hasPlan: boolean;
    /** For each file; null while a debugger may pause the child. */
    readonly loadMs: number | null;
  };
  readonly pid: number | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** Called once, when a file takes `loadMs`. */
  onLate(): void;
}

interface State extends LoadingDeps {
  readonly skills: LoadedSkill[];
  readonly leftOut: LeftOutSkill[];
  readonly files: Map<string, readonly LoadedFile[]>;
  readonly failing: Set<string>;
  /** The file that the child is loading, undefined before the first and after the last. */
  file: string | undefined;
  since: number;
  refusal: Error | undefined;
  isReady: boolean;
  lateTimer: NodeJS.Timeout | undefined;
  slowTimer: NodeJS.Timeout | undefined;
}

/** The time of the first file begins now. */
export function createLoading(deps: LoadingDeps) {
  const state: State = {
    ...deps,
    skills: [],
    leftOut: [],
    files: new Map(),
    failing: new Set(),
    file: undefined,
    since: deps.clock.monotonic(),
    refusal: undefined,
    isReady: false,
    lateTimer: undefined,
    slowTimer: undefined,
  };
  startTimers(state);
  return bind(state, { take, found, failure, stop: stopTimers, restart });
}

/** The time of the first file begins now, and not at the start. */
function restart(state: State): void {
  stopTimers(state);
  state.since = state.clock.monotonic();
  startTimers(state);
}

function found({ skills, leftOut, files, failing }: State): FoundSkills {
  return { skills, leftOut, files, failing };
}

function take(state: State, message: StartMessage): Step {
  switch (message[0]) {
    case 'loading':
      begin(state, message[1]);
      return 'goes on';
    case 'skill':
      if (!state.load.isFirst || !isSkill(message[1])) return 'garbled';
      state.skills.push(message[1]);
      return 'goes on';
    case 'files':
      if (!state.load.hasPlan) return 'garbled';
      state.files.set(message[1], message[2]);
      return 'goes on';
    case 'failing':
      if (!state.load.hasPlan) return 'garbled';
      state.failing.add(message[1]);
      return 'goes on';
    case 'left-out':
      return takeLeftOut(state, message[1], message[2]);
    case 'ready':
      state.isReady = true;
      begin(state, undefined);
      return 'ready';
    case 'refused':
      state.refusal = readRefusal(message[1], message[2]);
      return 'refused';
    case 'unloaded': {
      if (state.load.isFirst) return 'garbled';
      const error = cleanText(message[2].slice(0, errorCharsMax));
      const facts = { executor: state.pid, file: message[1], error };
      state.log.warn(facts, 'a skill no longer loads; its runs fail in this executor');
      return 'goes on';
    }
  }
}

function takeLeftOut(state: State, file: string, sentence: string): 'goes on' | 'garbled' {
  if (!state.load.isFirst || state.leftOut.length >= leftOutMax) return 'garbled';
  const reason = sentenceAfter(file, cleanText(sentence.slice(0, errorCharsMax)));
  state.leftOut.push({ file, reason });
  if (state.load.hasPlan) return 'goes on';
  state.log.warn({ file, reason }, 'left out of the skills: it breaks a rule');
  return 'goes on';
}

/** Starts the time of `next` and ends that of the previous file. */
function begin(state: State, next: string | undefined): void {
  stopTimers(state);
  const { clock, log, pid, file } = state;
  const ms = Math.round(clock.monotonic() - state.since);
  if (file !== undefined && ms >= slowMs) {
    log.warn({ executor: pid, file, ms }, 'a skill was slow to load');
  }
  state.file = next;
  state.since = clock.monotonic();
  if (next !== undefined) startTimers(state);
}

function startTimers(state: State): void {
  const { loadMs } = state.load;
  state.lateTimer = loadMs === null ? undefined : setTimeout(onLate, loadMs, state);
  state.slowTimer = setTimeout(onSlow, slowMs, state);
}

function stopTimers({ lateTimer, slowTimer }: State): void {
  clearTimeout(lateTimer);
  clearTimeout(slowTimer);
}

function onLate(state: State): void {
  const { file } = state;
  const { loadMs } = state.load;
  const hint = 'SKILL_LOAD_MS is how long it may take';
  state.refusal =
    file === undefined
      ? new Error(`an executor did not begin to load skills within ${loadMs} ms; ${hint}`)
      : new SkillLoadError(file, `did not finish loading within ${loadMs} ms; ${hint}`);
  state.onLate();
}

function onSlow({ file, log, pid }: State): void {
  if (file === undefined) return;
  log.warn({ executor: pid, file, ms: slowMs }, 'a skill is still loading');
}

/**
 * Why it was never ready; undefined if it was. `how` describes its exit, `stderrTail` is the end of its
 * stderr.
 */
function failure(
  { isReady, refusal, file }: State,
  how: string,
  stderrTail: string,
): Error | undefined {
  if (isReady) return undefined;
  if (refusal !== undefined) return refusal;
  if (file !== undefined) {
    return new SkillLoadError(file, `ended the process that loaded it (${how})`);
  }
  return new Error(`an executor could not start: ${how} ${stderrTail}`.trim());
}

/** The child has put the file before the sentence already. */
function readRefusal(file: string, sentence: string): Error {
  if (file === '' || !sentence.startsWith(`${file}: `)) return new Error(sentence);
  return new SkillLoadError(file, sentenceAfter(file, sentence));
}

function sentenceAfter(file: string, sentence: string): string {
  const prefix = `${file}: `;
  return sentence.startsWith(prefix) ? sentence.slice(prefix.length) : sentence;
}

/** The child checked the skills, but the parent does not trust its messages. */
function isSkill(skill: LoadedSkill): boolean {
  const { key, file, folder, code, ...fields } = skill;
  return (
    typeof file === 'string' &&
    (code === null || typeof code === 'string') &&
    (folder === null || folder === dirname(file)) &&
    key === `${skill.category}/${skill.version}/${skill.name}` &&
    skillFault({ ...fields, run() {} }) === undefined
  );
}
