/**
 * Configuration: a function from the environment, and the files of secrets that it names, to settings. All faults are
 * reported at once, before anything starts.
 */
import { availableParallelism } from 'node:os';
import {
  knownVariables,
  type ProviderSettings,
  providersFrom,
} from '../../adapters/models/providers.ts';
import { type Misspelt, misspeltVariables } from '../../kernel/misspelt.ts';
import { roles } from './readers.ts';
import { readSecretFiles, secretFilesIn } from './secret-files.ts';
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

/** What is wrong with a variable of the environment. */
export interface ConfigFault {
  /** The name of the variable. */
  readonly variable: string;
  /** A sentence without secrets. */
  readonly message: string;
}

/** The environment as far as it can be read. */
export interface ExaminedConfig {
  /** Has the default of each variable with a fault. */
  readonly config: Config;
  readonly faults: readonly ConfigFault[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the environment. Throws a ConfigError that names every fault. */
export function readConfig(environment: Environment): Config {
  const { config, faults } = examineConfig(environment);
  if (faults.length > 0) throw new ConfigError(faults.map(({ message }) => message));
  return config;
}

/** Reads the environment, faulty or not. */
export function examineConfig(environment: Environment): ExaminedConfig {
  const given = readSecretFiles(environment);
  const { settings, faults: unread } = readVariables(given.environment);
  const providers = providersFrom(given.environment);
  const faults = [...given.faults, ...unread];
  return {
    faults: [
      ...faults,
      ...contradictions(settings, faults),
      ...providers.faults.map((message) => ({ variable: variableIn(message), message })),
    ],
    config: {
      ...settings,
      providers: providers.settings,
      skillEnvironment: skillEnvironmentOf(environment),
      executors: settings.executors ?? availableParallelism(),
      isEmbedded: settings.databaseUrl === null,
      isClustered: settings.redisUrl !== null,
    },
  };
}

function readVariables(environment: Environment): { settings: Settings; faults: ConfigFault[] } {
  const faults: ConfigFault[] = [];
  const settings: Record<string, unknown> = {};
  for (const [key, variable] of Object.entries(variables)) {
    const { name, default: byDefault } = variable;
    const read = (text: string | null) => (text === null ? { value: null } : variable.read(text));
    const given = environment[name] ?? byDefault;
    const result = read(given);
    if ('value' in result) {
      settings[key] = result.value;
      continue;
    }
    const message = `${name}=${withoutSecret(name, given ?? '')}: expected ${result.expected}`;
    faults.push({ variable: name, message });
    const fallback = read(byDefault);
    settings[key] = 'value' in fallback ? fallback.value : null;
  }
  return { settings: settings as unknown as Settings, faults };
}

/** Faults of settings that contradict each other. A setting with a fault of its own counts as set. */
function contradictions(settings: Settings, faults: readonly ConfigFault[]): ConfigFault[] {
  const { adminSecret, databaseUrl, redisUrl, modelContextTokens, modelOutputTokens } = settings;
  const isFaulty = (name: string) => faults.some(({ variable }) => variable === name);
  const isUnset = (name: string, value: unknown) => value === null && !isFaulty(name);
  const found: ConfigFault[] = [];
  const add = (variable: string, message: string) =>
    found.push({ variable, message: `${variable} ${message}` });
  const hasDatabase = !isUnset('DATABASE_URL', databaseUrl);
  if (hasDatabase && isUnset('ADMIN_SECRET', adminSecret)) {
    add('ADMIN_SECRET', 'is not set: with DATABASE_URL it has to be, so that every process agrees');
  }
  if (redisUrl !== null && !hasDatabase) {
    add(
      'DATABASE_URL',
      'is not set: with REDIS_URL it has to be, for processes that share a queue share a database',
    );
  }
  if (settings.roles.size < roles.length && isUnset('REDIS_URL', redisUrl)) {
    add(
      'REDIS_URL',
      'is not set: with ROLES it has to be, for what this process does not do others have to',
    );
  }
  if (settings.filesS3Url !== null) {
    for (const [name, value] of [
      ['FILES_S3_ACCESS_KEY_ID', settings.filesS3AccessKeyId],
      ['FILES_S3_SECRET_ACCESS_KEY', settings.filesS3SecretAccessKey],
    ] as const) {
      if (isUnset(name, value)) {
        add(
          name,
          'is not set: with FILES_S3_URL it has to be, for requests to the storage are signed',
        );
      }
    }
  }
  if (settings.filesSpoolMaxMb < settings.fileMaxMb) {
    add('FILES_SPOOL_MAX_MB', 'is less than FILE_MAX_MB: the largest file would never be kept');
  }
  const isMeasured = !isFaulty('MODEL_OUTPUT_TOKENS') && !isFaulty('MODEL_CONTEXT_TOKENS');
  if (isMeasured && modelOutputTokens * 2 > modelContextTokens) {
    add('MODEL_OUTPUT_TOKENS', 'is more than half of MODEL_CONTEXT_TOKENS: nothing would fit');
  }
  return found;
}

/** The platform's own settings are left out, so that no skill can declare its way to them. */
function skillEnvironmentOf(environment: Environment): Record<string, string> {
  const own = new Set([
    ...Object.values(variables).map(({ name }) => name),
    ...knownVariables.map((name) => `${name}_API_KEY`),
    ...secretFilesIn(environment),
  ]);
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value === undefined || own.has(name) || !settingName.test(name) ? [] : [[name, value]],
    ),
  );
}

/** Variables that are no settings and were probably meant as one. */
export function misspeltSettings(environment: Environment): Misspelt[] {
  const settings = Object.values(variables).map(({ name }) => name);
  const ofProviders = knownVariables.flatMap((name) => [
    `${name}_API_KEY`,
    `${name}_BASE_URL`,
    `${name}_PROTOCOL`,
  ]);
  // Any name before these makes a provider.
  const isProvider = (name: string) => /_(?:BASE_URL|API_KEY|PROTOCOL)$/.test(name);
  const files = new Set(secretFilesIn(environment));
  const isKnown = (name: string) => isProvider(name) || files.has(name);
  return misspeltVariables(environment, [...settings, ...ofProviders], isKnown);
}

function variableIn(fault: string): string {
  return /^\w+/.exec(fault)?.[0] ?? '';
}

/** A value as a fault may show it: never a secret. */
function withoutSecret(name: string, value: string): string {
  return /SECRET|_KEY$|_URL$/.test(name) ? '…' : JSON.stringify(value);
}
