/**
 * Reads a SKILL.md and validates it against the Agent Skills standard (agentskills.io). Accepts everything
 * that the standard allows. A file that breaks a rule gives one sentence that names the file and the rule.
 * Where the standard is silent, the reader is lenient: it ignores unknown fields, metadata may hold any
 * value, and `allowed-tools` may be a list.
 */
import { isUtf8 } from 'node:buffer';
import { realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { SkillLoadError } from './load-error.ts';
import { readFile, skillMdBytesMax } from './read-file.ts';
import {
  type FrontMatter,
  FrontMatterError,
  type FrontMatterValue,
  splitFrontMatter,
} from './skill-md-front-matter.ts';

/** The content of a SKILL.md. Texts are trimmed. */
export interface SkillMd {
  readonly name: string;
  readonly description: string;
  readonly compatibility: string | undefined;
  /** The entries whose value is text; others are ignored. */
  readonly metadata: ReadonlyMap<string, string>;
  readonly allowedTools: readonly string[];
  /** The instructions; may be empty. */
  readonly body: string;
  /** Bytes of the file that come before the body. */
  readonly bodyOffset: number;
}

const nameCharsMax = 64;
const descriptionCharsMax = 1_024;
const compatibilityCharsMax = 500;

/**
 * Validates `file`, a SKILL.md in its folder; reads the file unless `bytes` is given. Throws
 * SkillLoadError.
 */
export function readSkillMd(file: string, bytes?: Buffer): SkillMd {
  const text = readText(file, bytes);
  try {
    const { fields, bodyAt } = splitFrontMatter(text.slice(bomLength(text)));
    const body = text.slice(bomLength(text) + bodyAt);
    const start = body.length - body.trimStart().length;
    return {
      name: nameOf(fields, file),
      ...optionalFields(fields),
      description: descriptionOf(fields),
      body: body.trim(),
      bodyOffset: Buffer.byteLength(text.slice(0, bomLength(text) + bodyAt + start)),
    };
  } catch (error) {
    if (error instanceof FrontMatterError) throw new SkillLoadError(file, error.message);
    throw error;
  }
}

function readText(file: string, given: Buffer | undefined): string {
  const bytes = given ?? readFile(file, skillMdBytesMax);
  if (bytes.length > skillMdBytesMax) {
    throw new SkillLoadError(file, `must have at most ${skillMdBytesMax} bytes`);
  }
  if (!isUtf8(bytes)) throw new SkillLoadError(file, 'must be valid UTF-8');
  if (bytes.includes(0)) throw new SkillLoadError(file, 'must not contain a NUL character');
  return bytes.toString();
}

function bomLength(text: string): number {
  return text.startsWith('\ufeff') ? 1 : 0;
}

function nameOf(fields: FrontMatter, file: string): string {
  const name = requiredText(fields, 'name');
  const fault = nameFault(name) ?? folderFault(name, dirname(file));
  if (fault !== undefined) throw new FrontMatterError(`name ${fault}`);
  return name;
}

function nameFault(name: string): string | undefined {
  const got = JSON.stringify(name.slice(0, 80));
  if (lengthOf(name) > nameCharsMax) {
    return `must have at most ${nameCharsMax} characters, has ${lengthOf(name)}`;
  }
  if (/[^a-z0-9-]/.test(name)) {
    return `must have only lower-case letters a-z, digits and hyphens, got ${got}`;
  }
  if (name.startsWith('-') || name.endsWith('-')) {
    return `must not begin or end with a hyphen, got ${got}`;
  }
  return name.includes('--') ? `must not have two hyphens in a row, got ${got}` : undefined;
}

/** A link to the folder may be called otherwise: one that a deployment switches, for example. */
function folderFault(name: string, folder: string): string | undefined {
  if (name === basename(folder) || name === basename(realpathSync(folder))) return undefined;
  return `must be the name of its folder, ${JSON.stringify(basename(folder))}, got ${JSON.stringify(name)}`;
}

function descriptionOf(fields: FrontMatter): string {
  const description = requiredText(fields, 'description');
  checkLength('description', description, descriptionCharsMax);
  return description;
}

function optionalFields(fields: FrontMatter) {
  textField(fields, 'license');
  const compatibility = textField(fields, 'compatibility');
  if (compatibility === '') throw new FrontMatterError('compatibility must not be empty');
  checkLength('compatibility', compatibility ?? '', compatibilityCharsMax);
  return {
    compatibility,
    metadata: metadataOf(fields.get('metadata')),
    allowedTools: toolsOf(fields.get('allowed-tools')),
  };
}

function requiredText(fields: FrontMatter, field: string): string {
  if (!fields.has(field)) throw new FrontMatterError(`has no ${field} in its front matter`);
  const text = textField(fields, field);
  if (text === undefined || text === '') throw new FrontMatterError(`${field} must not be empty`);
  return text;
}

/** Undefined when the field is absent or has no value. */
function textField(fields: FrontMatter, field: string): string | undefined {
  const value = fields.get(field) ?? undefined;
  if (value === undefined || typeof value === 'string') return value?.trim();
  throw new FrontMatterError(`${field} must be a text, got ${kindOf(value)}`);
}

function checkLength(field: string, text: string, max: number): void {
  const length = lengthOf(text);
  if (length <= max) return;
  throw new FrontMatterError(`${field} must have at most ${max} characters, has ${length}`);
}

function metadataOf(value: FrontMatterValue | undefined): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  if (value === undefined || value === null) return texts;
  if (!(value instanceof Map)) {
    throw new FrontMatterError(`metadata must be a map from keys to values, got ${kindOf(value)}`);
  }
  for (const [key, item] of value as FrontMatter) {
    if (typeof item === 'string') texts.set(key, item.trim());
  }
  return texts;
}

function toolsOf(value: FrontMatterValue | undefined): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return splitTools(value);
  if (value instanceof Map || !Array.isArray(value) || !value.every(isText)) {
    throw new FrontMatterError('allowed-tools must be a text or a list of texts');
  }
  return value.map((tool) => tool.trim());
}

/** Splits at spaces and commas outside of parentheses: `Bash(git add:*, git commit:*), Read`. */
function splitTools(text: string): string[] {
  const tools = [''];
  let depth = 0;
  for (const c of text) {
    if (c === '(') depth++;
    if (c === ')') depth = Math.max(0, depth - 1);
    if (depth === 0 && /[\s,]/.test(c)) tools.push('');
    else tools.push(`${tools.pop()}${c}`);
  }
  return tools.filter((tool) => tool !== '');
}

const isText = (value: unknown) => typeof value === 'string';

/** Counts Unicode characters, as the standard does. */
function lengthOf(text: string): number {
  return Array.from(text).length;
}

function kindOf(value: FrontMatterValue): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  return value instanceof Map ? 'a map' : 'a list';
}
