/**
 * Configuration: a pure function from the environment to settings. All faults are reported at once,
 * before anything starts.
 */
import { availableParallelism } from 'node:os';
import { type Misspelt, misspeltVariables } from '../kernel/misspelt.ts';
import { type ProviderSettings, providersFrom } from '../models/providers.ts';
import { roles } from './readers.ts';
import { variables } from './variables.ts';

const settingName = /^[A-Z][A-Z0-9_]{0,63}$/;

type Variables = typeof variables;
type ValueOf<V> = V extends { read(text: string): infer R }
  ? Extract<R, { value: unknown }>['value']
  : never;
type Settings = {
  [K in keyof Variables]: Variables[K]['default'] extends null
    ? ValueOf<Variables[K]> | null
    : ValueOf<Variables[K]>;
};

/** The settings of a process. */
export interface Config extends Omit<Settings, 'executors'> {
  readonly executors: number;
  /** Variables that settings of skills may take their values from, if a skill declares their name. */
  readonly skillEnvironment: Readonly<Record<string, string>>;
  /** Providers of models by name; the variables are named after them (see `providersFrom`). */
  readonly providers: ReadonlyMap<string, ProviderSettings>;
  /** Whether the platform runs in one process on its own database. */
  readonly isEmbedded: boolean;
  /** Whether other processes work on the same database. */
  readonly isClustered: boolean;
}

/** Everything that is wrong with the environment, a line each. */
export class ConfigError extends Error {
  constructor(faults: readonly string[]) {
    super(['The configuration is not valid:', ...faults.map((fault) => `  ${fault}`)].join('\n'));
    this.name = 'ConfigError';
  }
}

/** Reads the environment. Throws a ConfigError that names every fault. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const [key, variable] of Object.entries(variables)) {
    const given = environment[variable.name] ?? variable.default;
    if (given === null) {
      settings[key] = null;
      continue;
    }
    const result = variable.read(given);
    if ('value' in result) settings[key] = result.value;
    else
      faults.push(
        `${variable.name}=${withoutSecret(variable.name, given)}: expected ${result.expected}`,
      );
  }
  const read = settings as unknown as Settings;
  if (read.databaseUrl !== null && read.adminSecret === null && !faults.some(isAboutSecret)) {
    faults.push(
      'ADMIN_SECRET is not set: with DATABASE_URL it has to be, so that every process agrees',
    );
  }
  const { redisUrl, databaseUrl } = read;
  if (redisUrl && databaseUrl === null) {
    faults.push(
      'DATABASE_URL is not set: with REDIS_URL it has to be, for processes that share a queue share a database',
    );
  }
  if (read.roles?.size < roles.length && redisUrl === null) {
    faults.push(
      'REDIS_URL is not set: with ROLES it has to be, for what this process does not do others have to',
    );
  }
  const providers = providersFrom(environment);
  faults.push(...providers.faults);
  if (read.modelOutputTokens * 2 > read.modelContextTokens) {
    faults.push('MODEL_OUTPUT_TOKENS is more than half of MODEL_CONTEXT_TOKENS: nothing would fit');
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    ...read,
    providers: providers.settings,
    skillEnvironment: skillEnvironmentOf(environment),
    executors: read.executors ?? availableParallelism(),
    isEmbedded: read.databaseUrl === null,
    isClustered: read.redisUrl !== null,
  };
}

/** The platform's own settings are left out, so that no skill can declare its way to them. */
function skillEnvironmentOf(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const own = new Set([
    ...Object.values(variables).map(({ name }) => name),
    'OPENAI_API_KEY',
    'ANTHROPIC_API_KEY',
  ]);
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value === undefined || own.has(name) || !settingName.test(name) ? [] : [[name, value]],
    ),
  );
}

/** Variables that are no settings and were probably meant as one. */
export function misspeltSettings(
  environment: Readonly<Record<string, string | undefined>>,
): Misspelt[] {
  const settings = Object.values(variables).map(({ name }) => name);
  const ofProviders = ['OPENAI', 'ANTHROPIC'].flatMap((name) => [
    `${name}_API_KEY`,
    `${name}_BASE_URL`,
  ]);
  // Any name before these makes a provider.
  const isProvider = (name: string) => /_(?:BASE_URL|API_KEY)$/.test(name);
  return misspeltVariables(environment, [...settings, ...ofProviders], isProvider);
}

function isAboutSecret(fault: string): boolean {
  return fault.startsWith('ADMIN_SECRET');
}

/** A value as a fault may show it: never a secret. */
function withoutSecret(name: string, value: string): string {
  return /SECRET|_KEY$|_URL$/.test(name) ? '…' : JSON.stringify(value);
}
