/** The settings that commands share with the platform: where its data is. */
import { readSecretFiles } from '../../core/config/secret-files.ts';
import { variables } from '../../core/config/variables.ts';

export interface DataSettings {
  readonly dataDir: string;
  readonly databaseUrl: string | null;
}

/** Reads `DATA_DIR` and `DATABASE_URL` as the platform does. */
export function readDataSettings(
  given: Readonly<Record<string, string | undefined>>,
): DataSettings {
  const { environment, faults } = readSecretFiles(given);
  const unread = faults.find(({ variable }) => variable === variables.databaseUrl.name);
  if (unread !== undefined) throw new Error(unread.message);
  return {
    dataDir: setting(environment, variables.dataDir) ?? '',
    databaseUrl: setting(environment, variables.databaseUrl),
  };
}

type TextVariable = (typeof variables)['dataDir'] | (typeof variables)['databaseUrl'];

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
