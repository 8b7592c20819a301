/**
 * A child's start, as the parent hears it: which module it is loading, which skills it found, that
 * it is ready or why it is not. Promises a sentence for every way in which a start can fail, with
 * the file's name wherever one is known. Bounds the time of each file, and logs the slow ones.
 */
import { dirname } from 'node:path';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { cleanText } from '../kernel/text.ts';
import { type LeftOutSkill, SkillLoadError } from '../skills/sources/load-error.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { skillFault } from '../skills/sources/skill-shape.ts';
import { ERROR_CHARS_MAX } from './limits.ts';
import type { ChildMessage } from './protocol.ts';

export type StartMessage = Extract<
  ChildMessage,
  ['loading' | 'skill' | 'ready' | 'refused' | 'unloaded' | 'left-out', ...unknown[]]
>;

/** Milliseconds after which a file counts as slow. */
const SLOW_MS = 2_000;
/** More than a directory of skills has; a child that says more talks nonsense. */
const LEFT_OUT_MAX = 10_000;

/** What was found so far; of the first child only. */
export interface FoundSkills {
  readonly skills: readonly LoadedSkill[];
  readonly leftOut: readonly LeftOutSkill[];
}

export interface Loading extends FoundSkills {
  readonly isReady: boolean;
  take(message: StartMessage): 'goes on' | 'ready' | 'refused' | 'garbled';
  /** Why it is not ready; `how` describes its exit, `stderrTail` is the end of its stderr. */
  failure(how: string, stderrTail: string): Error;
  /** Clears the timers; called when the child is gone. */
  stop(): void;
}

/** The time of the first file begins now. `onLate` is called once, when a file takes `loadMs`. */
export function createLoading(parts: {
  isFirst: boolean;
  /** Null while a debugger may pause the child. */
  loadMs: number | null;
  pid: number | undefined;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  onLate(): void;
}): Loading {
  const { isFirst, loadMs, pid, clock, log, onLate } = parts;
  const skills: LoadedSkill[] = [];
  const leftOut: LeftOutSkill[] = [];
  let file: string | undefined;
  let since = clock.monotonic();
  let refusal: Error | undefined;
  let isReady = false;
  let lateTimer = loadMs === null ? undefined : setTimeout(late, loadMs);
  let slowTimer = setTimeout(slow, SLOW_MS);

  function late(): void {
    const hint = 'SKILL_LOAD_MS is how long it may take';
    refusal =
      file === undefined
        ? new Error(`an executor did not begin to load skills within ${loadMs} ms; ${hint}`)
        : new SkillLoadError(file, `did not finish loading within ${loadMs} ms; ${hint}`);
    onLate();
  }

  function slow(): void {
    if (file === undefined) return;
    log.warn({ executor: pid, file, ms: SLOW_MS }, 'a skill is still loading');
  }

  /** Starts the timer of `next` and ends that of the previous file. */
  function begin(next: string | undefined): void {
    stop();
    const ms = Math.round(clock.monotonic() - since);
    if (file !== undefined && ms >= SLOW_MS) {
      log.warn({ executor: pid, file, ms }, 'a skill was slow to load');
    }
    file = next;
    since = clock.monotonic();
    if (next === undefined) return;
    lateTimer = loadMs === null ? undefined : setTimeout(late, loadMs);
    slowTimer = setTimeout(slow, SLOW_MS);
  }

  function stop(): void {
    clearTimeout(lateTimer);
    clearTimeout(slowTimer);
  }

  return {
    skills,
    leftOut,
    get isReady() {
      return isReady;
    },
    take(message) {
      switch (message[0]) {
        case 'loading':
          begin(message[1]);
          return 'goes on';
        case 'skill':
          if (!isFirst || !isSkill(message[1])) return 'garbled';
          skills.push(message[1]);
          return 'goes on';
        case 'left-out': {
          if (!isFirst || leftOut.length >= LEFT_OUT_MAX) return 'garbled';
          const [, path, sentence] = message;
          const reason = sentenceAfter(path, cleanText(sentence.slice(0, ERROR_CHARS_MAX)));
          leftOut.push({ file: path, reason });
          log.warn({ file: path, reason }, 'a SKILL.md breaks a rule: this skill is left out');
          return 'goes on';
        }
        case 'ready':
          isReady = true;
          begin(undefined);
          return 'ready';
        case 'refused':
          refusal = readRefusal(message[1], message[2]);
          return 'refused';
        case 'unloaded':
          if (isFirst) return 'garbled';
          log.warn(
            {
              executor: pid,
              file: message[1],
              error: cleanText(message[2].slice(0, ERROR_CHARS_MAX)),
            },
            'a skill no longer loads; its runs fail in this executor',
          );
          return 'goes on';
      }
    },
    failure(how, stderrTail) {
      if (refusal !== undefined) return refusal;
      if (file === undefined) {
        return new Error(`an executor could not start: ${how} ${stderrTail}`.trim());
      }
      return new SkillLoadError(file, `ended the process that loaded it (${how})`);
    },
    stop,
  };
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
  const { key, file, folder, ...fields } = skill;
  return (
    typeof file === 'string' &&
    (folder === null || folder === dirname(file)) &&
    key === `${skill.category}/${skill.version}/${skill.name}` &&
    skillFault({ ...fields, run() {} }) === undefined
  );
}
