/** `skillwright login` and `skillwright profiles`: addresses and keys that are kept. */
import { createClient } from '@skillwright/client';
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import { type Io, writeJson } from '../io.ts';
import { printTable } from '../print.ts';
import { profilesFile, readProfiles, readTarget, saveProfile, writeProfiles } from '../profile.ts';

interface LoginOptions {
  readonly url?: string;
  readonly key?: string;
  readonly adminSecret?: string;
  readonly name: string;
  readonly json?: boolean;
}

interface Options {
  readonly json?: boolean;
}

const asJson = ['--json', 'print one JSON value'] as const;

export function addProfileCommands(program: Command, io: Io): void {
  defineCommand(program, 'login', {
    about: 'check a key and keep it with its address as a profile, which is then the current one',
    examples: [
      'login --url https://skills.example.com',
      'login --url https://skills.example.com --name work < key.txt',
    ],
  })
    .option('--url <url>', 'the address of the platform (SKILLWRIGHT_URL)')
    .option('--key <key>', 'an API key; asked for, or read from stdin, when left out')
    .option('--admin-secret <secret>', 'keep the admin secret, too')
    .option('--name <name>', 'the name of the profile', 'default')
    .option(...asJson)
    .action((options: LoginOptions) => login(io, options));
  const profiles = defineCommand(program, 'profiles', {
    about: 'list profiles, choose and remove them',
    examples: ['profiles', 'profiles use work'],
  });
  defineCommand(
    profiles,
    'list',
    { about: 'list profiles (the default of profiles)', examples: ['profiles'] },
    { isDefault: true },
  )
    .option(...asJson)
    .action((options: Options) => listProfiles(io, options));
  defineCommand(profiles, 'use <name>', {
    about: 'take this profile where none is named',
    examples: ['profiles use work'],
  })
    .option(...asJson)
    .action((name: string, options: Options) => useProfile(io, name, options));
  defineCommand(profiles, 'remove <name>', {
    about: 'forget a profile and its key; the key itself stays valid',
    examples: ['profiles remove work'],
  })
    .option(...asJson)
    .action((name: string, options: Options) => removeProfile(io, name, options));
}

async function login(io: Io, options: LoginOptions): Promise<void> {
  const { name, adminSecret, json } = options;
  const { profiles = {} } = readProfiles(io.env);
  const old = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  const chosen = options.url ?? io.env['SKILLWRIGHT_URL'] ?? old?.url;
  // The key of another profile or of the environment is not meant.
  const { url } = readTarget({ env: {} }, { url: chosen });
  const key = options.key ?? (await readKey(io, url));
  const client = createClient({ url, apiKey: key, adminSecret, fetch: (...to) => io.fetch(...to) });
  await client.request({ method: 'GET', path: '/api/jobs', query: { limit: 1 } });
  if (adminSecret !== undefined) await client.request({ method: 'GET', path: '/admin/skills' });
  const profile = { url, key, ...(adminSecret === undefined ? {} : { adminSecret }) };
  const was_current = saveProfile(io.env, name, profile);
  if (json) return writeJson(io, { name, url, was_current });
  io.stdout.write(`The profile ${name} is for ${url}. It is in ${profilesFile(io.env)}\n`);
}

async function readKey({ stdin }: Io, url: string): Promise<string> {
  const text = stdin.isTTY ? await stdin.askSecret(`API key for ${url}: `) : await stdin.read();
  const key = text.trim();
  if (key !== '') return key;
  throw new CliError('Give an API key: --key, or on stdin', exitCodes.usage);
}

function listProfiles(io: Io, { json }: Options): void {
  const { current, profiles = {} } = readProfiles(io.env);
  const listed = Object.entries(profiles).map(([name, { url, key, adminSecret }]) => ({
    name,
    url: url ?? null,
    is_current: name === current,
    has_key: key !== undefined,
    has_admin_secret: adminSecret !== undefined,
  }));
  if (json) {
    writeJson(io, { data: listed, total: listed.length });
    return;
  }
  printTable(io, listed, [
    { title: '', of: (one) => (one.is_current ? '*' : ' ') },
    { title: 'PROFILE', of: (one) => one.name },
    { title: 'ADDRESS', of: (one) => one.url },
    { title: 'ADMIN', of: (one) => (one.has_admin_secret ? 'yes' : 'no') },
  ]);
}

function useProfile(io: Io, name: string, { json }: Options): void {
  const { profiles } = known(io, name);
  writeProfiles(io.env, { current: name, profiles });
  if (json) writeJson(io, { name });
  else io.stdout.write(`${name} is the current profile\n`);
}

function removeProfile(io: Io, name: string, { json }: Options): void {
  const { current, profiles } = known(io, name);
  const { [name]: _removed, ...others } = profiles;
  writeProfiles(io.env, { current: current === name ? undefined : current, profiles: others });
  if (json) writeJson(io, { name });
  else io.stdout.write(`${name} is removed\n`);
}

function known(io: Io, name: string) {
  const { current, profiles = {} } = readProfiles(io.env);
  if (Object.hasOwn(profiles, name)) return { current, profiles };
  const names = Object.keys(profiles).join(', ') || 'none';
  throw new CliError(`There is no profile ${name}; there are: ${names}`, exitCodes.usage);
}
