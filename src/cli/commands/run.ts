/** `skillwright run`: runs a skill of a platform and prints its output. */
import { createClient, JobFailedError, SkillwrightError } from '@skillwright/client';
import type { Command } from 'commander';
import { CliError, exitCodes } from '../exit-codes.ts';
import { type Io, writeJson } from '../io.ts';
import { readTarget, type TargetOptions } from '../profile.ts';

export function addRunCommands(program: Command, io: Io): void {
  program
    .command('run')
    .description('run a skill and print its output as JSON')
    .argument('<skill>', 'category/version/name')
    .argument('[input]', 'its input as JSON', '{}')
    .option('--url <url>', 'the address of the platform (SKILLWRIGHT_URL)')
    .option('--key <key>', 'an API key (SKILLWRIGHT_API_KEY)')
    .option('--profile <name>', 'a profile with address and key (SKILLWRIGHT_PROFILE)')
    .action((skill: string, input: string, options: TargetOptions) =>
      runSkill(io, { skill, input, options }),
    );
}

async function runSkill(
  io: Io,
  { skill, input, options }: { skill: string; input: string; options: TargetOptions },
): Promise<void> {
  const { fetch } = io;
  const client = createClient({ ...readTarget(io, options), fetch });
  const value = parseInput(input);
  try {
    writeJson(io, await client.run(skill, value));
  } catch (error) {
    throw asCliError(error);
  }
}

function parseInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `The input is no JSON: ${(error as Error).message}`;
    throw new CliError(message, exitCodes.usage);
  }
}

function asCliError(error: unknown): unknown {
  if (error instanceof TypeError) return new CliError(error.message, exitCodes.usage);
  if (error instanceof JobFailedError) {
    const message = `The job ${error.jobId} failed with ${error.code}: ${error.message}`;
    return new CliError(message, exitCodes.jobFailed);
  }
  if (!(error instanceof SkillwrightError)) return error;
  if (error.status === 0) {
    const message = `${error.message}. Is the platform started, and is its address right (--url)?`;
    return new CliError(message, exitCodes.unreachable);
  }
  const isRefused = error.status === 401 || error.status === 403;
  return new CliError(error.message, isRefused ? exitCodes.refused : exitCodes.failed);
}
