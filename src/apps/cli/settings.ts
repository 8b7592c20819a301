/** The settings that commands share with the platform: where its data is. */
import { variables } from '../../core/config/variables.ts';

export interface DataSettings {
  readonly dataDir: string;
  readonly databaseUrl: string | null;
}

/** Reads `DATA_DIR` and `DATABASE_URL` as the platform does. */
export function readDataSettings(
  environment: Readonly<Record<string, string | undefined>>,
): DataSettings {
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
