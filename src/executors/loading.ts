/**
 * A child's start, as the parent hears it: which module it is loading, which skills it found, that
 * it is ready or why it is not. Promises a sentence for every way in which a start can fail, with
 * the file's name wherever one is known.
 */
import { dirname } from 'node:path';
import { SkillLoadError } from '../skills/sources/load-error.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import { skillFault } from '../skills/sources/skill-shape.ts';
import type { ChildMessage } from './protocol.ts';

export type StartMessage = Extract<
  ChildMessage,
  ['loading' | 'skill' | 'ready' | 'refused', ...unknown[]]
>;

export interface Loading {
  /** What was found so far; of the first child only. */
  readonly skills: LoadedSkill[];
  readonly isReady: boolean;
  take(message: StartMessage): 'goes on' | 'ready' | 'refused' | 'garbled';
  /** Why it is not ready; `how` its process ended, and what it printed last. */
  failure(how: string, lastWords: string): Error;
  /** The same, when it took longer than `ms`. */
  lateness(ms: number): Error;
}

export function createLoading(isFirst: boolean): Loading {
  const skills: LoadedSkill[] = [];
  let file: string | undefined;
  let refusal: Error | undefined;
  let isReady = false;
  return {
    skills,
    get isReady() {
      return isReady;
    },
    take(message) {
      switch (message[0]) {
        case 'loading':
          file = message[1];
          return 'goes on';
        case 'skill':
          if (!isFirst || !isSkill(message[1])) return 'garbled';
          skills.push(message[1]);
          return 'goes on';
        case 'ready':
          isReady = true;
          return 'ready';
        case 'refused':
          refusal = readRefusal(message[1], message[2]);
          return 'refused';
      }
    },
    failure(how, lastWords) {
      if (refusal !== undefined) return refusal;
      if (file === undefined) {
        return new Error(`an executor could not start: ${how} ${lastWords}`.trim());
      }
      return new SkillLoadError(file, `ended the process that loaded it (${how})`);
    },
    lateness(ms) {
      const sentence = `did not finish loading within ${ms} ms`;
      if (file === undefined) return new Error(`an executor ${sentence}`);
      return new SkillLoadError(file, sentence);
    },
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
