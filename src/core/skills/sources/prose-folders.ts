/**
 * The folders of SKILL.md skills in directories, for a process that loads no skills. Reads their front matter alone: no
 * code of an author is run.
 */
import { findSkillFiles, isSkillMd } from './find-modules.ts';
import { SkillLoadError } from './load-error.ts';
import { loadSkillModule } from './modules.ts';

/** By `category/version/name`. An invalid SKILL.md is left out, as where skills are loaded. */
export async function findProseFolders(
  dirs: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const folders = new Map<string, string>();
  for (const file of filesIn(dirs)) {
    try {
      const { key, folder } = (await loadSkillModule(file)).skill;
      if (folder !== null && !folders.has(key)) folders.set(key, folder);
    } catch (error) {
      if (!(error instanceof SkillLoadError)) throw error;
    }
  }
  return folders;
}

/** None of a directory that is not there. A process that loads skills reports their faults. */
function filesIn(dirs: readonly string[]): string[] {
  try {
    return findSkillFiles(dirs).files.filter(isSkillMd);
  } catch (error) {
    if (error instanceof SkillLoadError) return [];
    throw error;
  }
}
