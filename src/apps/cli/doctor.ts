/**
 * `skillwright doctor`: examines the configuration, the runtime, the data directory, the stores, the models, the
 * skills and the port that a start would use, and says what is wrong and what to do. It changes nothing; code of skills runs as far
 * as loading it does.
 */
import { knownVariables } from '../../adapters/models/providers.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import { checkConfiguration } from './findings/configuration.ts';
import { checkDataDirectory, checkDisk } from './findings/data-directory.ts';
import { type Finding, fault } from './findings/finding.ts';
import { checkModel } from './findings/model.ts';
import { checkPort } from './findings/port.ts';
import { findRunning } from './findings/running.ts';
import { checkRuntime, type Runtime } from './findings/runtime.ts';
import { checkSkills } from './findings/skills.ts';
import { checkDatabase, checkRedis } from './findings/stores.ts';
import { checkTemporary } from './findings/temporary.ts';
import { type Io, writeJson } from './io.ts';
import { state } from './print.ts';

type DoctorIo = Pick<Io, 'fetch' | 'now' | 'stdout'>;

/** Prints all findings about `env`; `version` is that of this program. Throws CliError if there is a fault. */
export async function doctor(
  io: DoctorIo,
  env: Io['env'],
  version: string,
  runtime: Runtime,
  { json }: { json?: boolean },
): Promise<void> {
  const findings = await examine(io, env, version, runtime);
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

async function examine(
  io: DoctorIo,
  env: Io['env'],
  version: string,
  runtime: Runtime,
): Promise<Finding[]> {
  const { config, faulty, findings } = checkConfiguration(env);
  const running = await findRunning(config, io);
  let providers: readonly string[] = [];
  const database = async () => {
    const checked = await checkDatabase(config, () => io.now());
    ({ providers } = checked);
    return checked.findings;
  };
  const checks: readonly Examination[] = [
    { name: 'runtime', needs: [], find: () => checkRuntime(runtime, io.now()) },
    { name: 'temporary', needs: ['ROLES'], find: () => checkTemporary(config, runtime) },
    { name: 'data', needs: stores, find: () => checkDataDirectory(config, running) },
    { name: 'disk', needs: stores, find: () => checkDisk(config, runtime) },
    { name: 'database', needs: stores, find: database },
    { name: 'redis', needs: ['REDIS_URL'], find: () => checkRedis(config) },
    { name: 'model', needs: model, find: () => checkModel(config, providers) },
    { name: 'skills', needs: skills, find: () => checkSkills(config) },
    { name: 'port', needs: address, find: () => checkPort(config, running, version) },
  ];
  const all = [...findings];
  for (const check of checks) {
    if (!check.needs.some((name) => faulty.has(name))) all.push(...(await findWith(check)));
  }
  return all;
}

interface Examination {
  readonly name: string;
  /** It examines what these settings name, and is left out where one of them has a fault. */
  readonly needs: readonly string[];
  find(): readonly Finding[] | Promise<readonly Finding[]>;
}

const stores = ['DATA_DIR', 'DATABASE_URL'];
const model = knownVariables
  .flatMap((name) => [`${name}_API_KEY`, `${name}_BASE_URL`])
  .concat('DEFAULT_MODEL', 'EMBEDDING_MODEL');
const skills = ['SKILLS_DIR', 'SKILL_LOAD_MS', 'ROLES'];
const address = ['PORT', 'HOST', 'ROLES', ...stores];

/** A check that fails itself is a fault, and ends no other. */
async function findWith({ name, find }: Examination): Promise<readonly Finding[]> {
  try {
    return await find();
  } catch (error) {
    const message = `This cannot be examined (${(error as Error).message})`;
    return [fault(name, message, 'see what is wrong with the file or server that it names')];
  }
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
