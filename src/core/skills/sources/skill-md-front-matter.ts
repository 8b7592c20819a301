/**
 * The front matter of a SKILL.md: YAML between two lines `---`, as values that are text, lists and
 * maps only. A scalar is the text that is written (`1.10` stays `1.10`), so that what a field holds
 * is decided by the standard and not by YAML's types. Bounded in size and depth; aliases, unknown
 * tags and repeated keys are refused, so nothing is expanded, constructed or overridden.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { isCleanText } from '../../../kernel/text.ts';

/** Null when a key has no value. */
export type FrontMatterValue =
  | string
  | null
  | readonly FrontMatterValue[]
  | ReadonlyMap<string, FrontMatterValue>;

export type FrontMatter = ReadonlyMap<string, FrontMatterValue>;

/** A broken rule, as the end of a sentence that begins with the file's name. */
export class FrontMatterError extends Error {}

/** UTF-8 bytes. The standard's own fields need less than 8 KiB. */
const frontMatterBytesMax = 65_536;
const depthMax = 16;
const openingPattern = /^---[ \t]*\r?\n/;
const closingPattern = /(?:^|\n)---[ \t]*(?:\r?\n|$)/;

/** Splits a SKILL.md. Throws FrontMatterError. `bodyAt` is the offset of the body in `text`. */
export function splitFrontMatter(text: string): { fields: FrontMatter; bodyAt: number } {
  const [opening] = openingPattern.exec(text) ?? [];
  if (opening === undefined) {
    throw new FrontMatterError('must begin with front matter: a line ---, YAML and a line ---');
  }
  const rest = text.slice(opening.length);
  const closing = closingPattern.exec(rest);
  if (closing === null) throw new FrontMatterError('has no line --- that ends its front matter');
  const yaml = rest.slice(0, closing.index);
  return {
    fields: parseFrontMatter(yaml),
    bodyAt: opening.length + closing.index + closing[0].length,
  };
}

function parseFrontMatter(yaml: string): FrontMatter {
  if (Buffer.byteLength(yaml) > frontMatterBytesMax) {
    throw new FrontMatterError(`front matter must have at most ${frontMatterBytesMax} bytes`);
  }
  const lines = new LineCounter();
  // Repeated keys are checked below, in linear time.
  const document = parseDocument(yaml, {
    schema: 'core',
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter: lines,
  });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) throw notYaml(fault, lines);
  const fields = plain(document.contents, 0);
  if (!(fields instanceof Map)) throw new FrontMatterError('front matter must be a YAML mapping');
  return fields;
}

function notYaml(
  fault: { code: string; message: string; pos: [number, number] },
  lines: LineCounter,
): FrontMatterError {
  // The front matter begins on the file's second line.
  const line = lines.linePos(fault.pos[0]).line + 1;
  const advice = fault.code === 'BLOCK_AS_IMPLICIT_KEY' ? '; put a text with ": " in quotes' : '';
  const [message] = fault.message.split('\n');
  return new FrontMatterError(`front matter is not valid YAML: ${message} (line ${line})${advice}`);
}

function plain(node: unknown, depth: number): FrontMatterValue {
  if (depth > depthMax) {
    throw new FrontMatterError(`front matter must not nest deeper than ${depthMax} levels`);
  }
  if (isAlias(node)) throw new FrontMatterError('front matter must not use YAML aliases (*name)');
  if (isMap(node)) return mapOf(node.items, depth);
  if (isSeq(node)) return node.items.map((item) => plain(item, depth + 1));
  return isScalar(node) ? textOf(node) : null;
}

function mapOf(pairs: { key: unknown; value: unknown }[], depth: number): FrontMatter {
  const map = new Map<string, FrontMatterValue>();
  for (const { key, value } of pairs) {
    const name = isScalar(key) ? textOf(key) : null;
    if (name === null) throw new FrontMatterError('front matter must have texts as keys');
    if (map.has(name)) {
      throw new FrontMatterError(`front matter has the key ${JSON.stringify(name)} twice`);
    }
    map.set(name, plain(value, depth + 1));
  }
  return map;
}

function textOf({ value, source }: { value: unknown; source?: string }): string | null {
  if (value === null) return null;
  const text = typeof value === 'string' ? value : (source ?? String(value));
  if (isCleanText(text)) return text;
  throw new FrontMatterError('front matter must be well-formed Unicode without NUL');
}
