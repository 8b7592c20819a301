/** The thread of `skillwright doctor` that loads the operator's skills, each by itself, and says which do not load. */
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { provideAuthorModule } from '../../../core/skills/sources/author-module.ts';
import { findSkillFiles, isSkillMd } from '../../../core/skills/sources/find-modules.ts';
import { isInstalled } from '../../../core/skills/sources/installation.ts';
import { SkillLoadError } from '../../../core/skills/sources/load-error.ts';
import { loadNext } from '../../../core/skills/sources/modules.ts';
import type { LoadSkillsData, LoadSkillsMessage } from './skills.ts';

const { skillsDir } = workerData as LoadSkillsData;
const catalog = join(import.meta.dirname, '../../../core/skills/catalog');

provideAuthorModule();
const owners = new Map<string, string>();
let loaded = 0;
for (const file of findSkillFiles([catalog, skillsDir], {
  onFault: (error) => tellFault(error, false),
  onLeftOut: (error) => tellFault(error, true),
})) {
  const isOwn = !isInstalled(file);
  if (isOwn) say({ loading: file });
  try {
    await loadNext(file, owners, { checkSchemas: () => isOwn });
    if (isOwn) loaded += 1;
  } catch (error) {
    if (!(error instanceof SkillLoadError)) throw error;
    tellFault(error, isSkillMd(file));
  }
}
say({ loaded });

/** The message of the error begins with the file. */
function tellFault({ file, message }: SkillLoadError, isLeftOut: boolean): void {
  const reason = message.slice(`${file}: `.length);
  say({ file, reason, isLeftOut });
}

function say(message: LoadSkillsMessage): void {
  parentPort?.postMessage(message);
}
