/** `skillwright doctor` and `skillwright upgrade`: is this installation sound, and may it be upgraded? */
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import { readNamedEnvFile } from '../env-file.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import { Runtime } from '../findings/runtime.ts';
import type { Io } from '../io.ts';

export function addMaintenanceCommands(program: Command, io: Io, version: string): void {
  defineCommand(program, 'doctor', {
    about:
      'say what is wrong with configuration, runtime, data, disk, stores, skills, clocks and port',
    examples: ['doctor', 'doctor --env-file .env', 'doctor --json'],
  })
    .option('--env-file <file>', 'take what the environment does not set from this file')
    .option('--json', 'print one JSON value')
    .action(async ({ envFile, ...options }: { envFile?: string; json?: boolean }) => {
      const env = { ...readNamedEnvFile(io, envFile), ...io.env };
      const { doctor } = await import('../doctor.ts');
      await doctor(io, env, version, new Runtime(), options);
    });
  defineCommand(program, 'upgrade', {
    about: 'try the migrations of this version on a copy of the database',
    examples: ['upgrade --check'],
  })
    .option('--check', 'change nothing; a start of this version upgrades')
    .option('--json', 'print one JSON value')
    .action((options: { check?: boolean; json?: boolean }) => upgrade(io, options));
}

async function upgrade(io: Io, options: { check?: boolean; json?: boolean }): Promise<void> {
  if (!options.check) {
    const message =
      'A start of the new version upgrades; to try it before: skillwright upgrade --check';
    throw new CliError(message, exitCodes.usage);
  }
  const { checkUpgrade } = await import('../upgrade.ts');
  await checkUpgrade(io, options);
}
