/**
 * `skillwright doctor`: looks at the configuration, the runtime, the data directory, the stores, the models, the
 * skills and the port that a start would use, and says what is wrong and what to do. It changes nothing; code of skills runs as far
 * as loading it does.
 */
import { CliError, exitCodes } from './exit-codes.ts';
import { checkConfiguration } from './findings/configuration.ts';
import { checkDataDirectory, checkDisk } from './findings/data-directory.ts';
import type { Finding } from './findings/finding.ts';
import { checkModel } from './findings/model.ts';
import { checkPort } from './findings/port.ts';
import { findRunning } from './findings/running.ts';
import { checkRuntime, type Runtime } from './findings/runtime.ts';
import { checkSkills } from './findings/skills.ts';
import { checkDatabase, checkRedis } from './findings/stores.ts';
import { checkTemporary } from './findings/temporary.ts';
import { type Io, writeJson } from './io.ts';
import { state } from './print.ts';

export interface DoctorDeps {
  readonly io: Pick<Io, 'env' | 'fetch' | 'now' | 'stdout'>;
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

type Found = readonly Finding[];

async function examine({ io, version, runtime }: DoctorDeps): Promise<Finding[]> {
  const { config, faulty, findings } = checkConfiguration(io.env);
  const running = await findRunning(config, io);
  const database = await unlessFaulty(faulty, stores, () => checkDatabase(config, io.now));
  const groups: readonly [needed: readonly string[], check: () => Found | Promise<Found>][] = [
    [[], () => checkRuntime(runtime, io.now())],
    [['ROLES'], () => checkTemporary(config, runtime)],
    [stores, () => checkDataDirectory(config, running)],
    [stores, () => checkDisk(config, runtime)],
    [[], () => database?.findings ?? []],
    [['REDIS_URL'], () => checkRedis(config)],
    [['DEFAULT_MODEL'], () => checkModel(config, database?.providers ?? [])],
    [['SKILLS_DIR', 'SKILL_LOAD_MS', 'ROLES'], () => checkSkills(config)],
    [['PORT', 'HOST', 'ROLES', ...stores], () => checkPort(config, { running, version })],
  ];
  const all = [...findings];
  for (const [needed, check] of groups) {
    all.push(...((await unlessFaulty(faulty, needed, check)) ?? []));
  }
  return all;
}

/** What says where the data is. */
const stores = ['DATA_DIR', 'DATABASE_URL'];

/** A check looks at what settings name: it is left out where one of them has a fault. */
async function unlessFaulty<Result>(
  faulty: ReadonlySet<string>,
  needed: readonly string[],
  check: () => Result | Promise<Result>,
): Promise<Result | null> {
  return needed.some((name) => faulty.has(name)) ? null : check();
}

function print(
  { stdout }: Pick<Io, 'stdout'>,
  { check, state: found, message, remedy }: Finding,
): void {
  const word = stdout.isTTY ? state(stdout, found.padEnd(7)) : found;
  const separator = stdout.isTTY ? '  ' : '\t';
  const text = remedy === undefined ? message : `${message}: ${remedy}`;
  stdout.write(
    `${word}${separator}${stdout.isTTY ? check.padEnd(13) : check}${separator}${text}\n`,
  );
}
