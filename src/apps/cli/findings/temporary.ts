/** The directory of temporary files, in which a start records the modules of the skills. */
import { accessSync, constants, statSync } from 'node:fs';
import type { Config } from '../../../core/config/config.ts';
import { type Finding, fault, ok } from './finding.ts';
import type { Runtime } from './runtime.ts';

const check = 'temporary';

export function checkTemporary({ roles }: Config, { temporary }: Runtime): Finding[] {
  if (!roles.has('worker')) return [];
  if (!statSync(temporary, { throwIfNoEntry: false })?.isDirectory()) {
    const message = `${temporary}, the directory of temporary files, does not exist`;
    return [fault(check, message, 'create it, or set TMPDIR to another')];
  }
  try {
    accessSync(temporary, constants.W_OK | constants.X_OK);
    return [ok(check, temporary)];
  } catch {
    const message = `${temporary}, the directory of temporary files, cannot be written by this user`;
    return [fault(check, message, 'set TMPDIR to one that can')];
  }
}
