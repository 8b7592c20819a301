/**
 * A child's start, from the messages of the child: which module it is loading, which skills it found, that
 * it is ready or why it is not. Promises a sentence for every way in which a start can fail, with
 * the file's name if it is known. Bounds the time of each file, and logs the slow ones.
 */
import { dirname } from 'node:path';
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

type Step = 'goes on' | 'ready' | 'refused' | 'garbled';

/** How a child loads its skills. */
export interface LoadMode {
  readonly isFirst: boolean;
  /** Its author is shown what does not load, so that the log need not. */
  readonly hasPlan: boolean;
  /** For each file; null while a debugger may pause the child. */
  readonly loadMs: number | null;
}

export class Loading {
  readonly #load: LoadMode;
  readonly #pid: number | undefined;
  readonly #clock: Clock;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #onLate: () => void;
  readonly #skills: LoadedSkill[] = [];
  readonly #leftOut: LeftOutSkill[] = [];
  readonly #files = new Map<string, readonly LoadedFile[]>();
  readonly #failing = new Set<string>();
  /** The file that the child is loading, undefined before the first and after the last. */
  #file: string | undefined;
  #since: number;
  #refusal: Error | undefined;
  #isReady = false;
  #lateTimer: NodeJS.Timeout | undefined;
  #slowTimer: NodeJS.Timeout | undefined;

  /** The time of the first file begins now. `onLate` is called once, when a file takes `loadMs`. */
  constructor(
    load: LoadMode,
    process: {
      readonly pid: number | undefined;
      readonly clock: Clock;
      readonly log: Pick<Logger, 'warn'>;
    },
    onLate: () => void,
  ) {
    this.#load = load;
    this.#pid = process.pid;
    this.#clock = process.clock;
    this.#log = process.log;
    this.#onLate = onLate;
    this.#since = process.clock.monotonic();
    this.#startTimers();
  }

  found(): FoundSkills {
    return {
      skills: this.#skills,
      leftOut: this.#leftOut,
      files: this.#files,
      failing: this.#failing,
    };
  }

  /** The time of the first file begins now, and not at the start. */
  restart(): void {
    this.stop();
    this.#since = this.#clock.monotonic();
    this.#startTimers();
  }

  take(message: StartMessage): Step {
    switch (message[0]) {
      case 'loading':
        this.#begin(message[1]);
        return 'goes on';
      case 'skill':
        if (!this.#load.isFirst || !isSkill(message[1])) return 'garbled';
        this.#skills.push(message[1]);
        return 'goes on';
      case 'files':
        if (!this.#load.hasPlan) return 'garbled';
        this.#files.set(message[1], message[2]);
        return 'goes on';
      case 'failing':
        if (!this.#load.hasPlan) return 'garbled';
        this.#failing.add(message[1]);
        return 'goes on';
      case 'left-out':
        return this.#takeLeftOut(message[1], message[2]);
      case 'ready':
        this.#isReady = true;
        this.#begin(undefined);
        return 'ready';
      case 'refused':
        this.#refusal = readRefusal(message[1], message[2]);
        return 'refused';
      case 'unloaded': {
        if (this.#load.isFirst) return 'garbled';
        const error = cleanText(message[2].slice(0, errorCharsMax));
        const facts = { executor: this.#pid, file: message[1], error };
        this.#log.warn(facts, 'a skill no longer loads; its runs fail in this executor');
        return 'goes on';
      }
    }
  }

  #takeLeftOut(file: string, sentence: string): 'goes on' | 'garbled' {
    if (!this.#load.isFirst || this.#leftOut.length >= leftOutMax) return 'garbled';
    const reason = sentenceAfter(file, cleanText(sentence.slice(0, errorCharsMax)));
    this.#leftOut.push({ file, reason });
    if (this.#load.hasPlan) return 'goes on';
    this.#log.warn({ file, reason }, 'left out of the skills: it breaks a rule');
    return 'goes on';
  }

  /** Starts the time of `next` and ends that of the previous file. */
  #begin(next: string | undefined): void {
    this.stop();
    const file = this.#file;
    const ms = Math.round(this.#clock.monotonic() - this.#since);
    if (file !== undefined && ms >= slowMs) {
      this.#log.warn({ executor: this.#pid, file, ms }, 'a skill was slow to load');
    }
    this.#file = next;
    this.#since = this.#clock.monotonic();
    if (next !== undefined) this.#startTimers();
  }

  #startTimers(): void {
    const { loadMs } = this.#load;
    this.#lateTimer = loadMs === null ? undefined : setTimeout(() => this.#refuseLate(), loadMs);
    this.#slowTimer = setTimeout(() => this.#reportSlow(), slowMs);
  }

  /** Ends the time of the file that is being loaded. */
  stop(): void {
    clearTimeout(this.#lateTimer);
    clearTimeout(this.#slowTimer);
  }

  #refuseLate(): void {
    const { loadMs } = this.#load;
    const file = this.#file;
    const hint = 'SKILL_LOAD_MS is how long it may take';
    this.#refusal =
      file === undefined
        ? new Error(`an executor did not begin to load skills within ${loadMs} ms; ${hint}`)
        : new SkillLoadError(file, `did not finish loading within ${loadMs} ms; ${hint}`);
    this.#onLate();
  }

  #reportSlow(): void {
    const file = this.#file;
    if (file === undefined) return;
    this.#log.warn({ executor: this.#pid, file, ms: slowMs }, 'a skill is still loading');
  }

  /**
   * Why it was never ready; undefined if it was. `how` describes its exit, `stderrTail` is the end of its
   * stderr.
   */
  failure(how: string, stderrTail: string): Error | undefined {
    if (this.#isReady) return undefined;
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#file !== undefined) {
      return new SkillLoadError(this.#file, `ended the process that loaded it (${how})`);
    }
    return new Error(`an executor could not start: ${how} ${stderrTail}`.trim());
  }
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
