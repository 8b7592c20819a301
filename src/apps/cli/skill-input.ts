/** The input of a skill as it is typed: JSON, `@file`, `-` for stdin, or `key=value` pairs. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CliError, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

/** Reads the input. Throws CliError where the words are no input. */
export function readSkillInput(
  io: Pick<Io, 'stdin' | 'cwd'>,
  words: readonly string[],
): Promise<unknown> {
  return readBody(io, words, fromPairs);
}

/** Reads values of settings, which are text as typed, whatever it looks like; `null` stands for none. */
export function readSettingValues(
  io: Pick<Io, 'stdin' | 'cwd'>,
  words: readonly string[],
): Promise<unknown> {
  return readBody(io, words, (pairs) =>
    Object.fromEntries(
      pairs.map((pair) => {
        const [name, value] = splitPair(pair);
        return [name, value === 'null' ? null : value];
      }),
    ),
  );
}

async function readBody(
  io: Pick<Io, 'stdin' | 'cwd'>,
  words: readonly string[],
  ofPairs: (pairs: readonly string[]) => object,
): Promise<unknown> {
  const [first, ...more] = words;
  if (first === undefined) return {};
  if (words.every(isPair)) return ofPairs(words);
  if (more.length > 0) {
    const message = `${more.find((word) => !isPair(word)) ?? first} is no key=value pair; an input as JSON is one argument, in quotes`;
    throw new CliError(message, exitCodes.usage);
  }
  if (first === '-') return readJsonFile(io, first);
  if (first.startsWith('@')) return readJsonFile(io, first.slice(1));
  return parsed(first, 'The input');
}

/** Reads a file of JSON, or stdin for `-`. Throws CliError where that cannot be read, or is no JSON. */
export async function readJsonFile(io: Pick<Io, 'stdin' | 'cwd'>, name: string): Promise<unknown> {
  if (name === '-') return parsed(await io.stdin.read(), 'What came on stdin');
  return parsed(await readText(resolve(io.cwd, name), name), name);
}

/** The fields of a body that name a skill. Throws CliError where the name is not that of one version. */
export function skillFields(skill: string): {
  skill_category: string;
  skill_version: string;
  skill_name: string;
} {
  const [skill_category, skill_version, skill_name, ...more] = skill.split('/');
  if (!skill_category || !skill_version || !skill_name || more.length > 0) {
    const message = `A skill is named category/version/name, not ${JSON.stringify(skill)}: skillwright skills lists them`;
    throw new CliError(message, exitCodes.usage);
  }
  return { skill_category, skill_version, skill_name };
}

/** A key may lead into an object: `customer.name=Ada`. */
function isPair(word: string): boolean {
  return /^[A-Za-z_][\w.-]*=/.test(word);
}

function splitPair(word: string): [key: string, value: string] {
  const at = word.indexOf('=');
  return [word.slice(0, at), word.slice(at + 1)];
}

/** A value that is JSON is taken as such, so `limit=3` is a number; any other is text. */
function fromPairs(words: readonly string[]): object {
  const input: Record<string, unknown> = {};
  for (const word of words) {
    const [path, value] = splitPair(word);
    const keys = path.split('.');
    const last = keys.pop() as string;
    let target = input;
    for (const key of keys) {
      const inner = Object.hasOwn(target, key) ? target[key] : undefined;
      const next = typeof inner === 'object' && inner !== null ? inner : {};
      define(target, key, next);
      target = next as Record<string, unknown>;
    }
    define(target, last, pairValue(value));
  }
  return input;
}

/** Not an assignment, which `__proto__` would turn into something else. */
function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function pairValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function readText(file: string, name: string): Promise<string> {
  return (await readBytes(file, name)).toString('utf8');
}

/** Reads a file, which messages call `name`. Throws CliError where it cannot be read. */
export async function readBytes(file: string, name: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? 'there is no such file' : message;
    throw new CliError(`${name} cannot be read: ${reason}`, exitCodes.usage);
  }
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(`${what} is no JSON: ${(error as Error).message}`, exitCodes.usage);
  }
}
