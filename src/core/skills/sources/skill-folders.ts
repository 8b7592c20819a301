/** The folders of the SKILL.md skills that a process has loaded. */
import { skillKey } from '../registry.ts';
import type { LoadedSkill } from './modules.ts';
import { readSkillFile } from './skill-folder.ts';

export class SkillFolders {
  readonly #definitions: () => readonly LoadedSkill[];

  /** `definitions` are those that the executors have loaded last. */
  constructor(definitions: () => readonly LoadedSkill[]) {
    this.#definitions = definitions;
  }

  /** Reads a file in the folder of a skill, or says why it cannot be read. */
  async read(
    skill: string,
    path: unknown,
    offset: unknown,
  ): Promise<{ text: string } | { error: string }> {
    const known = this.#definitions().find(
      ({ category, version, name }) => skillKey(category, version, name) === skill,
    );
    if (known === undefined || known.folder === null) {
      return { error: `There is no folder of ${skill}.` };
    }
    return readSkillFile(known.folder, path, { offset: offset ?? 0 });
  }
}
