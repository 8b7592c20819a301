/** The settings that commands share with the platform: where its data is. */
import type { S3Settings } from '../../adapters/blobs/s3-blobs.ts';
import { s3SettingsOf } from '../../core/config/s3-settings.ts';
import { readSecretFiles } from '../../core/config/secret-files.ts';
import { variables } from '../../core/config/variables.ts';

export interface DataSettings {
  readonly dataDir: string;
  readonly databaseUrl: string | null;
  /** The storage of files; null where they are in the directory. */
  readonly s3: S3Settings | null;
}

/** Reads `DATA_DIR`, `DATABASE_URL` and the settings of the storage of files as the platform does. */
export function readDataSettings(
  given: Readonly<Record<string, string | undefined>>,
): DataSettings {
  const { environment, faults } = readSecretFiles(given);
  const names = [variables.databaseUrl.name, variables.filesS3SecretAccessKey.name] as string[];
  const unread = faults.find(({ variable }) => names.includes(variable));
  if (unread !== undefined) throw new Error(unread.message);
  return {
    dataDir: setting(environment, variables.dataDir) ?? '',
    databaseUrl: setting(environment, variables.databaseUrl),
    s3: s3SettingsOf({
      filesS3Url: setting(environment, variables.filesS3Url),
      filesS3Region: setting(environment, variables.filesS3Region) ?? '',
      filesS3AccessKeyId: setting(environment, variables.filesS3AccessKeyId),
      filesS3SecretAccessKey: setting(environment, variables.filesS3SecretAccessKey),
    }),
  };
}

type TextVariable = Pick<
  (typeof variables)['dataDir' | 'databaseUrl' | 'filesS3Url'],
  'name' | 'read'
> & {
  readonly default: string | null;
};

function setting(
  environment: Readonly<Record<string, string | undefined>>,
  variable: TextVariable,
): string | null {
  const given = environment[variable.name] ?? variable.default;
  if (given === null) return null;
  const result = variable.read(given);
  if ('value' in result) return result.value;
  // The value itself may contain a password.
  throw new Error(`${variable.name}: expected ${result.expected}`);
}
