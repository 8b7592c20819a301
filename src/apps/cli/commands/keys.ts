/** `skillwright keys`: API keys, with the admin secret. */
import type { Command } from 'commander';
import { type ApiOptions, itemsOf, type Schema, showList } from '../api-answers.ts';
import { connect, path } from '../connection.ts';
import { defineAdminCommand, defineCommand } from '../define-command.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import { type Io, writeJson } from '../io.ts';
import { printFields } from '../print.ts';
import {
  profilesFile,
  readProfiles,
  readTarget,
  requireAdminSecret,
  saveProfile,
} from '../profile.ts';

interface CreateOptions extends ApiOptions {
  readonly scopes: string;
  readonly rateLimit?: string;
  readonly maxConcurrency?: string;
  readonly expiresAt?: string;
  readonly organization?: string;
  readonly save?: boolean | string;
  readonly keyOnly?: boolean;
}

export function addKeyCommands(program: Command, io: Io): void {
  const keys = defineCommand(program, 'keys', {
    about: 'create, list and revoke API keys, with the admin secret',
    examples: ['keys', `keys create 'nightly reports' --scopes text,web`],
  });
  keys.hook('preAction', (_keys, command) => requireAdminSecret(io, command.opts()));
  defineAdminCommand(keys, 'create <name>', {
    about: 'create an API key; only this command shows it',
    examples: [
      `keys create 'nightly reports' --scopes text,web --rate-limit 600`,
      `keys create me --scopes '*' --save`,
      `KEY=$(skillwright keys create me --scopes '*' --key-only)`,
    ],
  })
    .requiredOption('--scopes <scopes>', 'categories of skills, comma-separated, or * for all')
    .option('--rate-limit <n>', 'most requests in a minute')
    .option('--max-concurrency <n>', 'most of its runs at a time')
    .option('--expires-at <time>', 'when it ends, such as 2027-01-01T00:00:00Z')
    .option('--organization <id>', 'whose key it is')
    .option('--save [profile]', 'keep it as a profile (default), which is then the current one')
    .option('--key-only', 'print the key alone, for a script')
    .action((name: string, options: CreateOptions) => createKey(io, name, options));
  defineAdminCommand(
    keys,
    'list',
    { about: 'list all keys, newest first (the default of keys)', examples: ['keys list --json'] },
    { isDefault: true },
  ).action((options: ApiOptions) => listKeys(io, options));
  defineAdminCommand(keys, 'revoke <key>', {
    about: 'revoke a key for good, named by its id',
    examples: ['keys revoke 01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11 --cancel-jobs'],
  })
    .option('--cancel-jobs', 'cancel its active jobs, too')
    .action((id: string, options: ApiOptions & { cancelJobs?: boolean }) =>
      revokeKey(io, id, options),
    );
}

async function createKey(io: Io, name: string, options: CreateOptions): Promise<void> {
  const { scopes, rateLimit, maxConcurrency, expiresAt, organization, save } = options;
  const { url } = readTarget(io, options);
  const profile = typeof save === 'string' ? save : 'default';
  // Before the key is made.
  if (save === true) refuseOtherPlatform(io, profile, url);
  const body = {
    client_name: name,
    scopes: itemsOf(scopes),
    ...(rateLimit === undefined ? {} : { rate_limit: Number(rateLimit) }),
    ...(maxConcurrency === undefined ? {} : { max_concurrency: Number(maxConcurrency) }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(organization === undefined ? {} : { organization_id: organization }),
  };
  const request = { method: 'POST' as const, path: '/admin/api-keys', body };
  const made = await connect(io, options).request<Schema<'IssuedApiKey'>>(request);
  // Before it is saved, which may fail: the platform shows the key only now.
  printKey(io, made, options);
  if (save === undefined) return;
  saveProfile(io.env, profile, { url, key: made.plaintext_key });
  io.stderr.write(`It is the profile ${profile} for ${url}, in ${profilesFile(io.env)}\n`);
}

function printKey(io: Io, made: Schema<'IssuedApiKey'>, options: CreateOptions): void {
  const { plaintext_key, ...fields } = made;
  if (options.keyOnly) {
    io.stdout.write(`${plaintext_key}\n`);
    return;
  }
  if (options.json) {
    writeJson(io, made);
    return;
  }
  printFields(io, { plaintext_key, ...fields }, { times: ['created_at', 'expires_at'] });
  if (io.stdout.isTTY) io.stderr.write('The key is shown only now.\n');
}

/** Throws CliError where the profile that is replaced without being named is for another platform. */
function refuseOtherPlatform(io: Io, profile: string, url: string): void {
  const { profiles = {} } = readProfiles(io.env);
  const kept = Object.hasOwn(profiles, profile) ? profiles[profile]?.url : undefined;
  if (kept === undefined || URL.parse(kept)?.href === URL.parse(url)?.href) return;
  const message = `The profile ${profile} is for ${kept}, not ${url}: name another with --save <profile>, or replace it with --save ${profile}. No key was made`;
  throw new CliError(message, exitCodes.usage);
}

function listKeys(io: Io, options: ApiOptions): Promise<void> {
  return showList<Schema<'ApiKey'>>(io, options, {
    path: '/admin/api-keys',
    columns: [
      { title: 'KEY', of: (key) => key.id },
      { title: 'NAME', of: (key) => key.client_name },
      { title: 'ORGANIZATION', of: (key) => key.organization_id },
      { title: 'SCOPES', of: (key) => key.scopes },
      { title: 'PER MINUTE', of: (key) => key.rate_limit },
      { title: 'AT A TIME', of: (key) => key.max_concurrency ?? null },
      { title: 'STATE', of: (key) => (key.enabled ? 'enabled' : 'revoked') },
      { title: 'CREATED', of: (key) => key.created_at, as: 'time' },
      { title: 'EXPIRES', of: (key) => key.expires_at, as: 'time' },
    ],
  });
}

async function revokeKey(
  io: Io,
  id: string,
  options: ApiOptions & { cancelJobs?: boolean },
): Promise<void> {
  const query = { cancel_jobs: options.cancelJobs };
  const request = { method: 'DELETE' as const, path: path`/admin/api-keys/${id}`, query };
  const revoked = await connect(io, options).request(request);
  if (options.json) return writeJson(io, revoked);
  io.stdout.write(`${id} is revoked\n`);
}
