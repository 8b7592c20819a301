/** `skillwright dev`: the platform with its console, for an author of skills. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import { readEnvFile } from '../env-file.ts';
import { CliError, exitCodes } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import type { StartPlatform } from '../program.ts';

/** Read where it exists, in the directory in which the command runs. */
const envFile = '.env';
const defaultPort = '9229';
/** Until a file that is still being imported is shown as a fault. */
const loadMs = '10000';

interface DevOptions {
  readonly inspect?: string | true;
}

export function addDevCommands(program: Command, io: Io, startPlatform: StartPlatform): void {
  defineCommand(program, 'dev', {
    about: 'start the platform and reload skills as they are saved',
    examples: ['dev', 'dev ./my-skills --inspect'],
  })
    .argument('[directory]', 'the skills (SKILLS_DIR, else ./skills)')
    .option('--inspect [port]', `let a debugger attach to the executor, on port ${defaultPort}`)
    .action((directory: string | undefined, options: DevOptions) => {
      const given = readEnvFile(io, envFile) ?? {};
      const count = Object.keys(given).length;
      if (count > 0) io.stdout.write(`  Read ${envFile}: ${count} variables\n`);
      const settings = devSettings(
        { cwd: io.cwd, env: { ...given, ...io.env } },
        directory,
        options,
      );
      return startPlatform({ ...given, ...settings });
    });
}

function devSettings(
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  directory: string | undefined,
  { inspect }: DevOptions,
): Record<string, string> {
  const skills = resolve(cwd, directory ?? env['SKILLS_DIR'] ?? 'skills');
  if (statSync(skills, { throwIfNoEntry: false })?.isDirectory() !== true) {
    const message = `There is no directory ${skills}. Name the directory of your skills: skillwright dev DIRECTORY`;
    throw new CliError(message, exitCodes.usage);
  }
  return {
    SKILLS_DIR: skills,
    EXECUTORS: env['EXECUTORS'] ?? '1',
    SKILL_LOAD_MS: env['SKILL_LOAD_MS'] ?? loadMs,
    ...(inspect === undefined
      ? {}
      : { EXECUTOR_INSPECT_PORT: inspect === true ? defaultPort : inspect }),
  };
}
