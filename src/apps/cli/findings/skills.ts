/** The operator's own skills: whether all of them load, as a start would load them. */
import { accessSync, constants, statSync } from 'node:fs';
import { resolve as absolute, extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Config } from '../../../core/config/config.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'skills';
/** Faults that are listed; a dependency that is missing breaks many skills at once. */
const listedMax = 20;
/**
 * Until the thread loads the first file, or SKILL_LOAD_MS where that is longer. It loads code of the platform before, for
 * seconds on a busy machine.
 */
const beginMs = 60_000;
const thread = new URL(`./load-skills${extname(import.meta.url)}`, import.meta.url);

/** What the thread is given. */
export interface LoadSkillsData {
  readonly skillsDir: string;
}

/** What the thread says. A start leaves out a SKILL.md with a fault, and is refused by a module with one. */
export type LoadSkillsMessage =
  | { readonly loading: string }
  | { readonly file: string; readonly reason: string; readonly isLeftOut: boolean }
  | { readonly loaded: number };

export async function checkSkills({ skillsDir, skillLoadMs, roles }: Config): Promise<Finding[]> {
  if (skillsDir === null || !roles.has('worker')) return [];
  const folder = absolute(skillsDir);
  const setting = `SKILLS_DIR=${skillsDir}`;
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    return [fault(check, `${setting} is no directory`, 'create it, or correct the setting')];
  }
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
  } catch {
    const remedy = 'let the user that runs the platform read it';
    return [fault(check, `${setting} cannot be read by this user`, remedy)];
  }
  const { loaded, faults } = await loadAll(folder, skillLoadMs);
  if (faults.length === 0) return [ok(check, `${loaded} skills of ${folder} load`)];
  const listed = faults.slice(0, listedMax);
  const left = faults.length - listed.length;
  return left === 0
    ? listed
    : [...listed, fault(check, `${left} more files do not load`, 'correct these first')];
}

interface Loaded {
  readonly loaded: number;
  readonly faults: readonly Finding[];
}

/** In a thread, because the code of a skill may end its process, or never end. */
async function loadAll(skillsDir: string, loadMs: number): Promise<Loaded> {
  const workerData: LoadSkillsData = { skillsDir };
  // The output of skills is no finding. As in an executor, they see no settings of the platform.
  const worker = new Worker(thread, { workerData, stdout: true, stderr: true, env: {} });
  const faults: Finding[] = [];
  let isDone = false;
  const { promise, resolve } = Promise.withResolvers<Loaded>();
  let file = skillsDir;
  const end = (loaded: number) => {
    isDone = true;
    resolve({ loaded, faults });
  };
  const broken = (reason: string) => {
    // The end of the thread is expected then.
    if (isDone) return;
    faults.push(fault(check, `${file} ${reason}`, 'correct it; a start is refused until then'));
    end(0);
  };
  const late = () => broken(`does not load within ${loadMs} ms (SKILL_LOAD_MS)`);
  const firstMs = Math.max(beginMs, loadMs);
  let timer = setTimeout(() => broken(`did not begin to load within ${firstMs} ms`), firstMs);
  worker.on('message', (message: LoadSkillsMessage) => {
    if ('loaded' in message) return end(message.loaded);
    if ('loading' in message) {
      clearTimeout(timer);
      timer = setTimeout(late, loadMs);
      file = message.loading;
    } else faults.push(findingOf(message));
  });
  worker.on('error', (error) => broken(`ended the process that loads it: ${String(error)}`));
  worker.on('exit', () => broken('ended the process that loads it'));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

function findingOf({
  file,
  reason,
  isLeftOut,
}: Extract<LoadSkillsMessage, { file: string }>): Finding {
  const message = `${file}: ${reason}`;
  return isLeftOut
    ? warning(check, message, 'correct it; a start leaves this skill out until then')
    : fault(check, message, 'correct it; a start is refused until then');
}
