/**
 * Secrets by file, as supervisors of containers and systemd hand them out: `ADMIN_SECRET_FILE` names a file whose content
 * stands for `ADMIN_SECRET`, so that the secret is in no environment, which other processes and crash reports show.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { knownVariables } from '../../adapters/models/providers.ts';

/** The suffix of a variable that names a file. */
const suffix = '_FILE';
const secrets = [
  'ADMIN_SECRET',
  'ENCRYPTION_KEY',
  'DATABASE_URL',
  'REDIS_URL',
  'FILES_S3_SECRET_ACCESS_KEY',
];
const bytesMax = 64 * 1024;

type Environment = Readonly<Record<string, string | undefined>>;

export interface ReadEnvironment {
  /** With the contents of the files. */
  readonly environment: Environment;
  /** The secrets that cannot be read, with a sentence each. */
  readonly faults: readonly { readonly variable: string; readonly message: string }[];
}

/** The variables of `environment` that name files of secrets; other programs have such variables too. */
export function secretFilesIn(environment: Environment): string[] {
  const isProvider = (name: string) =>
    knownVariables.includes(name) || environment[`${name}_BASE_URL`] !== undefined;
  const keys = Object.keys(environment).filter((name) => {
    const [, provider] = /^(\w+)_API_KEY_FILE$/.exec(name) ?? [];
    return provider !== undefined && isProvider(provider);
  });
  return [...secrets.map((name) => `${name}${suffix}`), ...keys].filter(
    (name) => (environment[name] ?? '') !== '',
  );
}

/** Reads the secrets that the environment names by file. */
export function readSecretFiles(environment: Environment): ReadEnvironment {
  const read: Record<string, string | undefined> = { ...environment };
  const faults: { variable: string; message: string }[] = [];
  for (const name of secretFilesIn(environment)) {
    const variable = name.slice(0, -suffix.length);
    const file = environment[name] ?? '';
    const outcome =
      environment[variable] === undefined
        ? readText(file)
        : { fault: `is set beside ${variable}: unset one of them` };
    if ('text' in outcome) read[variable] = outcome.text;
    else faults.push({ variable, message: `${name}=${JSON.stringify(file)} ${outcome.fault}` });
  }
  return { environment: read, faults };
}

function readText(file: string): { text: string } | { fault: string } {
  const bytes = Buffer.alloc(bytesMax + 1);
  try {
    const descriptor = openSync(file, 'r');
    try {
      const length = readSync(descriptor, bytes, 0, bytes.length, 0);
      if (length > bytesMax) return { fault: `is longer than ${bytesMax} bytes` };
      const text = bytes.toString('utf8', 0, length).trim();
      return text === '' ? { fault: 'is empty' } : { text };
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return { fault: `cannot be read: ${(error as NodeJS.ErrnoException).code}` };
  }
}
