/** What a start says in a terminal once the platform answers: addresses, and the next thing to do. */
import { existsSync } from 'node:fs';
import { join, sep } from 'node:path';
import { builtGuide } from '../../adapters/http/guide.ts';
import type { Config } from '../../core/config/config.ts';
import { isExecutable } from '../../kernel/node-program.ts';

export interface Started {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl'>;
  readonly version: string;
  readonly address: string;
  /** Whether the admin secret is in the data directory, and not in the environment. */
  readonly isSecretInFile: boolean;
}

const defaultAddress = 'http://127.0.0.1:3000';

export function greeting({ config, version, address, isSecretInFile }: Started): string {
  const { dataDir, databaseUrl } = config;
  const secret = isSecretInFile
    ? `$(cat ${quoted(join(dataDir, 'admin-secret'))})`
    : '$ADMIN_SECRET';
  const url = address === defaultAddress ? '' : ` --url ${address}`;
  // A checkout serves its guides only after they were built.
  const hasGuide = existsSync(join(builtGuide, 'index.html'));
  return [
    '',
    `  Skillwright ${version} is ready`,
    '',
    `  Console  ${address}/console`,
    `  API      ${address}`,
    `  Docs     ${address}/docs`,
    ...(hasGuide ? [`  Guides   ${address}/docs/guide/`] : []),
    `  Store    ${databaseUrl === null ? `data in ${dataDir}` : 'data in PostgreSQL'}`,
    '',
    '  Make a key, in another terminal:',
    `    ${command()} keys create me --scopes '*' --admin-secret "${secret}"${url}`,
    '',
  ].join('\n');
}

/** As a shell takes it for one word. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function command(): string {
  if (isExecutable()) return quoted(process.execPath);
  const isPackage = import.meta.dirname.split(sep).includes('node_modules');
  return isPackage ? 'npx skillwright' : './skillwright';
}
