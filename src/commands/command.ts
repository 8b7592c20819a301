/** The settings and the exit of the commands beside the platform (backup, migrate-to-cluster). */

import { operatorMessage } from '../config/operator-message.ts';
import { variables } from '../config/variables.ts';

export interface CommandSettings {
  readonly dataDir: string;
  readonly databaseUrl: string | null;
}

/** Runs a command with its settings; ends with code 1 and one sentence when it cannot. */
export async function runCommand(
  environment: Readonly<Record<string, string | undefined>>,
  command: (settings: CommandSettings) => Promise<void>,
): Promise<void> {
  try {
    await command({
      dataDir: setting(environment, variables.dataDir) ?? '',
      databaseUrl: setting(environment, variables.databaseUrl),
    });
  } catch (error) {
    process.stderr.write(`${operatorMessage(error)}\n`);
    process.exitCode = 1;
  }
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
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
