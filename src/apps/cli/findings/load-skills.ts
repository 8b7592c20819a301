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
const { files, faults } = findSkillFiles([catalog, skillsDir]);
for (const { error, isLeftOut } of faults) sendFault(error, isLeftOut);
for (const file of files) {
  const isOwn = !isInstalled(file);
  if (isOwn) send({ loading: file });
  try {
    await loadNext(file, owners, { checkSchemas: isOwn });
    if (isOwn) loaded += 1;
  } catch (error) {
    if (!(error instanceof SkillLoadError)) throw error;
    sendFault(error, isSkillMd(file));
  }
}
send({ loaded });

/** The message of the error begins with the file. */
function sendFault({ file, message }: SkillLoadError, isLeftOut: boolean): void {
  const reason = message.slice(`${file}: `.length);
  send({ file, reason, isLeftOut });
}

function send(message: LoadSkillsMessage): void {
  parentPort?.postMessage(message);
}
