/** Variables in a file, as `.env` files have them. What the environment has already counts more. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { CliError, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

/** The variables of the file that the environment does not have; null where there is no such file. */
export function readEnvFile(
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  name: string,
): Record<string, string> | null {
  const text = readText(resolve(cwd, name));
  if (text === null) return null;
  const entries = Object.entries(parseEnv(text)).filter(
    ([variable]) => env[variable] === undefined,
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

/** The variables of a file that an option names; none without the option. */
export function readNamedEnvFile(
  io: Pick<Io, 'env' | 'cwd'>,
  name: string | undefined,
): Record<string, string> {
  if (name === undefined) return {};
  const variables = readEnvFile(io, name);
  if (variables !== null) return variables;
  throw new CliError(`There is no file ${resolve(io.cwd, name)}`, exitCodes.usage);
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new CliError(`${file} cannot be read: ${message}`, exitCodes.usage);
  }
}
