/**
 * Stack traces of the bundle that name the sources. The bundle has a table of lines instead of source maps:
 * Node would read those at each start, and hold 70 MiB for them after the first stack trace. Columns
 * are the bundle's.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(import.meta.dirname, '../../..');

/** What a bundled file's lines were made of, in the file with `.lines` at the end of its name. */
export interface LineTable {
  /** Relative to the table's directory. */
  readonly sources: readonly string[];
  /** For each line the index of its source and the line there; -1 and 0 for a line without a source. */
  readonly lines: readonly number[];
}

const tables = new Map<string, LineTable | null>();

/** From now on the stack traces of this process name the sources. */
export function traceSources(): void {
  Error.prepareStackTrace = (error, frames) =>
    [Error.prototype.toString.call(error), ...frames.map(sourceFrame)].join('\n    at ');
}

function sourceFrame(frame: NodeJS.CallSite): string {
  const text = frame.toString();
  const [name, line] = [frame.getFileName(), frame.getLineNumber()];
  // An ES module is named by its url.
  const file = name?.startsWith('file:') ? fileURLToPath(name) : name;
  if (!file?.startsWith(root) || line === null) return text;
  const { sources, lines } = tableOf(file) ?? { sources: [], lines: [] };
  const source = sources[lines[2 * line - 2] ?? -1];
  if (source === undefined) return text;
  return text.replace(`${name}:${line}`, `${join(dirname(file), source)}:${lines[2 * line - 1]}`);
}

function tableOf(file: string): LineTable | null {
  let table = tables.get(file);
  if (table === undefined) {
    const path = `${file}.lines`;
    table = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as LineTable) : null;
    tables.set(file, table);
  }
  return table;
}
