/**
 * Why a module was not imported, as the end of a sentence with the place: `… (line 3, column 6)`, and the file where
 * that is another one. Node tells no place of a syntax error in JavaScript, so the text is checked once more, in a
 * process of its own, when there is one.
 */
import { spawn } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { basename, dirname, relative } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { isExecutable } from '../../../kernel/node-program.ts';
import { withDeadline } from '../../../kernel/with-deadline.ts';
import { isInstalled } from './installation.ts';

const checkMs = 5_000;
const moduleExtensions = ['.ts', '.mts', '.js', '.mjs'];
const strip =
  'process.stdout.write(require("module").stripTypeScriptTypes(require("fs").readFileSync(0, "utf8")))';

/** A place in a file. */
interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number | null;
}

/** The source that Node has read last: a module is compiled at once after it was read. */
interface ReadSource {
  readonly file: string;
  readonly source: string;
  readonly isTyped: boolean;
}

/** Watches what Node reads, until `stop`. */
export class SourceWatch {
  last: ReadSource | undefined;
  readonly #hooks = registerHooks({
    load: (url, context, nextLoad) => {
      const result = nextLoad(url, context);
      const { source, format } = result;
      if (url.startsWith('file:') && source != null && format?.startsWith('module') === true) {
        const text = typeof source === 'string' ? source : Buffer.from(source as never).toString();
        this.last = { file: pathOf(url), source: text, isTyped: format === 'module-typescript' };
      }
      return result;
    },
  });

  stop(): void {
    this.#hooks.deregister();
  }
}

/** `file` is what was imported; `last` what was read last for that. */
export async function importFault(
  error: unknown,
  file: string,
  last: ReadSource | undefined,
): Promise<string> {
  if (!(error instanceof Error)) return `it threw ${String(error)}`;
  const [first = ''] = (error.message || error.name).split('\n');
  const meant = meantImport(first, file);
  const message = `${first.replace(` imported from ${file}`, '')}${meant === null ? '' : `: write ${meant}`}`;
  const stack = error.stack ?? '';
  const place =
    parsedAt(stack) ??
    thrownAt(stack) ??
    importedAt(error, file) ??
    (await checkedAt(error, last).catch(() => undefined));
  return place === undefined ? message : `${message} ${placeText(place, file)}`;
}

function placeText({ file, line, column }: Place, imported: string): string {
  const at = column === null ? `line ${line}` : `line ${line}, column ${column}`;
  return file === imported ? `(${at})` : `(${at} of ${file})`;
}

/** The place that a parser of Node puts before the error: the line, an excerpt of it and a mark below. */
function parsedAt(stack: string): Place | undefined {
  const [, url, path, line] = /^(?:(file:\/\/\/.*)|(\/.*)):(\d+)\n/.exec(stack) ?? [];
  if (line === undefined) return undefined;
  const file = url === undefined ? (path ?? '') : pathOf(url);
  return { file, line: Number(line), column: markIn(stack) };
}

function markIn(stack: string): number | null {
  const [head = ''] = stack.split('\n\n', 1);
  const mark = head.split('\n').find((line) => /^\s*\^+\s*$/.test(line));
  return mark === undefined ? null : mark.indexOf('^') + 1;
}

/** The first frame outside of the platform's installation. */
function thrownAt(stack: string): Place | undefined {
  for (const frame of stack.split('\n')) {
    const [, url, line, column] = /^ +at .*?(file:\/\/\/.*):(\d+):(\d+)\)?$/.exec(frame) ?? [];
    if (url === undefined || isInstalled(pathOf(url))) continue;
    return { file: pathOf(url), line: Number(line), column: Number(column) };
  }
  return undefined;
}

/** How the import of a file has to be written: with its extension, or with the file of a folder; null for any other fault. */
function meantImport(message: string, file: string): string | null {
  const [, named, from = file] =
    /^(?:Cannot find module|Directory import) '(\/[^']+)'(?:.* imported from (\/.*))?$/.exec(
      message,
    ) ?? [];
  if (named === undefined) return null;
  const compiled = named.replace(/\.[cm]?js$/, '');
  const found = ['', '/index']
    .flatMap((end) => moduleExtensions.map((extension) => `${compiled}${end}${extension}`))
    .find((path) => statSync(path, { throwIfNoEntry: false })?.isFile());
  if (found === undefined) return null;
  const path = relative(dirname(from), found);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The line of the import that leads to nothing, if only one names it. */
function importedAt({ message }: Error, file: string): Place | undefined {
  const [, wanted, from = file] =
    /^(?:Cannot find (?:package|module)|Directory import) '([^']+)'(?:.* imported from (\/.*))?/.exec(
      message,
    ) ?? [];
  if (wanted === undefined) return undefined;
  const name = RegExp.escape(wanted.startsWith('/') ? basename(wanted) : wanted);
  const pattern = new RegExp(`["'](?:.*/)?${name}["'/]`);
  const found = lineIn(from, (line) => pattern.test(line));
  return found === undefined ? undefined : { file: from, line: found, column: null };
}

/** The line of a file for which this holds, if there is exactly one. */
export function lineIn(file: string, isWanted: (line: string) => boolean): number | undefined {
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    const found = lines.flatMap((line, i) => (isWanted(line) ? [i + 1] : []));
    return found.length === 1 ? found[0] : undefined;
  } catch {
    return undefined;
  }
}

async function checkedAt(error: Error, last: ReadSource | undefined): Promise<Place | undefined> {
  // The single executable checks no file.
  if (!(error instanceof SyntaxError) || last === undefined || isExecutable()) return undefined;
  const code = last.isTyped
    ? (await runNode(['--no-warnings', '-e', strip], last.source)).stdout
    : last.source;
  const { stderr } = await runNode(['--check', '--input-type=module', '-'], code);
  const [, line] = /^\[stdin\]:(\d+)\n/.exec(stderr) ?? [];
  // It is another error where something else was read in between.
  if (line === undefined || !stderr.includes(`SyntaxError: ${error.message}`)) return undefined;
  return { file: last.file, line: Number(line), column: markIn(stderr) };
}

async function runNode(args: readonly string[], input: string) {
  const child = spawn(process.execPath, args, { stdio: 'pipe' });
  child.on('error', () => {});
  child.stdin.on('error', () => {}).end(input);
  const ended = Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  try {
    const [stdout, stderr] = (await withDeadline(ended, checkMs)) ?? ['', ''];
    return { stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

function pathOf(url: string): string {
  const [plain = url] = url.split('?', 1);
  return fileURLToPath(plain);
}
