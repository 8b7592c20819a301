/** Places in the code of skills that a stack trace names. */
import { fileURLToPath } from 'node:url';
import { isInstalled } from '../skills/sources/installation.ts';

/** A place in a file. */
export interface Frame {
  /** Absolute path. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The line of the stack trace. */
  readonly text: string;
}

const framePattern = /^\s*at (?:[^(]*\()?((?:file:\/\/)?\/.*):(\d+):(\d+)\)?$/;
const packages = /[\\/]node_modules[\\/]/;

/**
 * The first frame in the code of a skill: outside of the platform, and of packages if there is another; null where the
 * stack trace has none.
 */
export function callerFrame(stack: string): Frame | null {
  let inPackage: Frame | null = null;
  for (const text of stack.split('\n')) {
    const frame = frameOf(text);
    if (frame === null || isInstalled(frame.file)) continue;
    if (!packages.test(frame.file)) return frame;
    inPackage ??= frame;
  }
  return inPackage;
}

function frameOf(text: string): Frame | null {
  const [, place, line, column] = framePattern.exec(text) ?? [];
  if (place === undefined) return null;
  const [plain = place] = place.split('?', 1);
  const file = plain.startsWith('file:') ? pathOf(plain) : plain;
  if (file === null) return null;
  return { file, line: Number(line), column: Number(column), text: text.trim() };
}

/** Null for a url that names no file here: a skill may write any text into its stack. */
function pathOf(url: string): string | null {
  try {
    return fileURLToPath(url);
  } catch {
    return null;
  }
}
