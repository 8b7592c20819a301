import { randomUUID } from 'node:crypto';
import { openSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Opens a file that has no name any more, so that it vanishes with its last user; returns its descriptor. */
export function openUnnamedFile(purpose: string): number {
  const file = join(tmpdir(), `skillwright-${purpose}-${randomUUID()}`);
  const fd = openSync(file, 'wx+', 0o600);
  unlinkSync(file);
  return fd;
}
