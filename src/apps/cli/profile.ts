/**
 * Which platform a command speaks to, and with which key: options, then the environment, then a profile of
 * `$XDG_CONFIG_HOME/skillwright/config.json`.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { readSecretFiles } from '../../core/config/secret-files.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import type { Io } from './io.ts';

/** The options of every command that speaks to a platform. */
export interface TargetOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  readonly adminSecret?: string | undefined;
  readonly profile?: string | undefined;
}

export interface Target {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly adminSecret: string | undefined;
}

export interface Profile {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  readonly adminSecret?: string | undefined;
}

export interface Profiles {
  /** The profile that is used when none is named. */
  readonly current?: string | undefined;
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
  const { environment } = readSecretFiles(env);
  return {
    url,
    apiKey: options.key ?? env['SKILLWRIGHT_API_KEY'] ?? profile.key,
    adminSecret: options.adminSecret ?? environment['ADMIN_SECRET'] ?? profile.adminSecret,
  };
}

/** Throws CliError where a command that needs the admin secret has none. */
export function requireAdminSecret(
  io: Pick<Io, 'env'>,
  options: TargetOptions,
  what = 'Keys are made, listed and revoked',
): void {
  if (readTarget(io, options).adminSecret !== undefined) return;
  const ways = 'give it with --admin-secret or in ADMIN_SECRET';
  const local = 'A platform on this machine keeps it in its data directory';
  const message = `${what} with the admin secret: ${ways}. ${local}: --admin-secret "$(cat data/admin-secret)"`;
  throw new CliError(message, exitCodes.usage);
}

function readProfile(env: Io['env'], name: string | undefined): Profile {
  const file = profilesFile(env);
  const { current, profiles = {} } = readProfiles(env);
  const wanted = name ?? env['SKILLWRIGHT_PROFILE'] ?? current;
  if (wanted === undefined) return {};
  const profile = Object.hasOwn(profiles, wanted) ? profiles[wanted] : undefined;
  if (profile !== undefined) return profile;
  const names = Object.keys(profiles).join(', ');
  const known = names === '' ? `${file} has no profiles` : `${file} has ${names}`;
  throw new CliError(`There is no profile ${wanted}: ${known}`, exitCodes.usage);
}

export function profilesFile(env: Io['env']): string {
  const home = env['XDG_CONFIG_HOME'] || join(env['HOME'] ?? homedir(), '.config');
  return join(home, 'skillwright', 'config.json');
}

export function readProfiles(env: Io['env']): Profiles {
  const file = profilesFile(env);
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Profiles;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    throw new CliError(`${file} cannot be read: ${message}`, exitCodes.failed);
  }
}

/** Keeps a profile, which is then the current one; returns the name of the one before. */
export function saveProfile(env: Io['env'], name: string, profile: Profile): string | null {
  const { current, profiles = {} } = readProfiles(env);
  writeProfiles(env, { current: name, profiles: { ...profiles, [name]: profile } });
  return current ?? null;
}

/** Replaces the file in one step. Only its owner may read it, because it has keys. */
export function writeProfiles(env: Io['env'], profiles: Profiles): void {
  const file = profilesFile(env);
  const draft = `${file}.new`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(draft, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  // The mode above is not that of a draft which an interrupted write left.
  chmodSync(draft, 0o600);
  renameSync(draft, file);
}
