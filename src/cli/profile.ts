/**
 * Which platform a command speaks to, and with which key: options, then the environment, then a profile of
 * `$XDG_CONFIG_HOME/skillwright/config.json`.
 */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CliError, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

/** The options of every command that speaks to a platform. */
export interface TargetOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  readonly profile?: string | undefined;
}

export interface Target {
  readonly url: string;
  readonly apiKey: string | undefined;
}

interface Profile {
  readonly url?: string;
  readonly key?: string;
}

interface Profiles {
  /** The profile that is used when none is named. */
  readonly current?: string;
  readonly profiles?: Readonly<Record<string, Profile>>;
}

/** The address of a platform that was started on this machine without settings. */
const defaultUrl = 'http://127.0.0.1:3000';

/** Finds out which platform is meant. Throws CliError for a profile that cannot be used. */
export function readTarget({ env }: Pick<Io, 'env'>, options: TargetOptions): Target {
  const profile = readProfile(env, options.profile);
  const url = options.url ?? env['SKILLWRIGHT_URL'] ?? profile.url ?? defaultUrl;
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    const message = `${url} is no address: expected one such as ${defaultUrl}`;
    throw new CliError(message, exitCodes.usage);
  }
  return { url, apiKey: options.key ?? env['SKILLWRIGHT_API_KEY'] ?? profile.key };
}

function readProfile(env: Io['env'], name: string | undefined): Profile {
  const file = profilesFile(env);
  const { current, profiles = {} } = readProfiles(file);
  const wanted = name ?? env['SKILLWRIGHT_PROFILE'] ?? current;
  if (wanted === undefined) return {};
  const profile = profiles[wanted];
  if (profile !== undefined) return profile;
  const names = Object.keys(profiles).join(', ');
  const known = names === '' ? `${file} has no profiles` : `${file} has ${names}`;
  throw new CliError(`There is no profile ${wanted}: ${known}`, exitCodes.usage);
}

function profilesFile(env: Io['env']): string {
  const home = env['XDG_CONFIG_HOME'] || join(env['HOME'] ?? homedir(), '.config');
  return join(home, 'skillwright', 'config.json');
}

function readProfiles(file: string): Profiles {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Profiles;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    throw new CliError(`${file} cannot be read: ${message}`, exitCodes.failed);
  }
}
