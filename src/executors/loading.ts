/**
 * A child's start, as the parent hears it: which module it is loading, which skills it found, that
 * it is ready or why it is not. Promises a sentence for every way in which a start can fail, with
 * the file's name wherever one is known. Bounds the time of each file, and logs the slow ones.
 */
import { dirname } from 'node:path';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { cleanText } from '../kernel/text.ts';
import { SkillLoadError } from '../skills/sources/load-error.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { skillFault } from '../skills/sources/skill-shape.ts';
import { ERROR_CHARS_MAX } from './limits.ts';
import type { ChildMessage } from './protocol.ts';

export type StartMessage = Extract<
  ChildMessage,
  ['loading' | 'skill' | 'ready' | 'refused' | 'unloaded', ...unknown[]]
>;

/** Milliseconds after which a file counts as slow. */
const SLOW_MS = 2_000;

export interface Loading {
  /** What was found so far; of the first child only. */
  readonly skills: LoadedSkill[];
  readonly isReady: boolean;
  take(message: StartMessage): 'goes on' | 'ready' | 'refused' | 'garbled';
  /** Why it is not ready; `how` its process ended, and what it printed last. */
  failure(how: string, lastWords: string): Error;
  /** Ends the timers; to be called when the child is gone. */
  stop(): void;
}

/** The time of the first file begins now. `onLate` is called once, when a file takes `loadMs`. */
export function createLoading(parts: {
  isFirst: boolean;
  /** Null while a debugger may hold the child. */
  loadMs: number | null;
  pid: number | undefined;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  onLate(): void;
}): Loading {
  const { isFirst, loadMs, pid, clock, log, onLate } = parts;
  const skills: LoadedSkill[] = [];
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

  /** The time of `next` begins, and that of the file before it ends. */
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
    failure(how, lastWords) {
      if (refusal !== undefined) return refusal;
      if (file === undefined) {
        return new Error(`an executor could not start: ${how} ${lastWords}`.trim());
      }
      return new SkillLoadError(file, `ended the process that loaded it (${how})`);
    },
    stop,
  };
}

/** The child has put the file before the sentence already. */
function readRefusal(file: string, sentence: string): Error {
  const prefix = `${file}: `;
  if (file === '' || !sentence.startsWith(prefix)) return new Error(sentence);
  return new SkillLoadError(file, sentence.slice(prefix.length));
}

/** The child checked them, but what a child says is not trusted. */
function isSkill(skill: LoadedSkill): boolean {
  const { key, file, folder, ...fields } = skill;
  return (
    typeof file === 'string' &&
    (folder === null || folder === dirname(file)) &&
    key === `${skill.category}/${skill.version}/${skill.name}` &&
    skillFault({ ...fields, run() {} }) === undefined
  );
}
