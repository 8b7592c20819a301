/**
 * `skillwright doctor`: looks at the configuration, the runtime, the data directory, the stores, the skills and the
 * port that a start would use, and says what is wrong and what to do. It changes nothing; code of skills runs as far
 * as loading it does.
 */
import type { Config } from '../config/config.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import { checkConfiguration } from './findings/configuration.ts';
import { checkDataDirectory, checkDisk } from './findings/data-directory.ts';
import type { Finding } from './findings/finding.ts';
import { checkPort } from './findings/port.ts';
import { checkRuntime, type Runtime } from './findings/runtime.ts';
import { checkSkills } from './findings/skills.ts';
import { checkDatabase, checkRedis } from './findings/stores.ts';
import { type Io, writeJson } from './io.ts';
import { state } from './print.ts';

export interface DoctorDeps {
  readonly io: Io;
  /** Of this program. */
  readonly version: string;
  readonly runtime: Runtime;
}

/** Prints all findings. Throws CliError if there is a fault. */
export async function doctor(deps: DoctorDeps, { json }: { json?: boolean }): Promise<void> {
  const { io } = deps;
  const findings = await examine(deps);
  const faults = findings.filter((finding) => finding.state === 'fault').length;
  if (json) {
    writeJson(io, { data: findings, total: findings.length, faults });
  } else {
    for (const finding of findings) print(io, finding);
  }
  if (faults === 0) return;
  const message = faults === 1 ? 'One fault was found' : `${faults} faults were found`;
  throw new CliError(message, exitCodes.failed);
}

async function examine({ io, version, runtime }: DoctorDeps): Promise<Finding[]> {
  const { config, findings } = checkConfiguration(io.env);
  const always = [...findings, ...checkRuntime(runtime, io.now())];
  // What the others look at is what the configuration says.
  if (config === null) return always;
  return [...always, ...(await examineInstallation({ io, version, runtime }, config))];
}

async function examineInstallation(
  { io, version, runtime }: DoctorDeps,
  config: Config,
): Promise<Finding[]> {
  return [
    ...checkDataDirectory(config),
    ...checkDisk(config, runtime),
    ...(await checkDatabase(config, io.now)),
    ...(await checkRedis(config)),
    ...(await checkSkills(config)),
    ...(await checkPort(config, { version, fetch: io.fetch })),
  ];
}

function print({ stdout }: Io, { check, state: found, message, remedy }: Finding): void {
  const word = stdout.isTTY ? state(stdout, found.padEnd(7)) : found;
  const separator = stdout.isTTY ? '  ' : '\t';
  const text = remedy === undefined ? message : `${message}: ${remedy}`;
  stdout.write(
    `${word}${separator}${stdout.isTTY ? check.padEnd(13) : check}${separator}${text}\n`,
  );
}
