/** The data directory: whether it can be written, its secrets, the room on its disk. */
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { refuseMovedDirectory } from '../../../adapters/database/move-marker.ts';
import { isAdminSecret } from '../../../core/config/admin-secret.ts';
import type { Config } from '../../../core/config/config.ts';
import { readEncryptionKey } from '../../../core/config/encryption-key.ts';
import { type Finding, fault, ok, warning } from './finding.ts';
import { isOwnPlatform, type Running } from './running.ts';
import type { Runtime } from './runtime.ts';

const check = 'data';

export function checkDataDirectory(config: Config, running: Running): Finding[] {
  if (!config.isEmbedded) return [];
  const dataDir = resolve(config.dataDir);
  const found = statSync(dataDir, { throwIfNoEntry: false });
  if (found !== undefined && !found.isDirectory()) {
    return [
      fault(check, `DATA_DIR=${dataDir} is no directory`, 'name another, or move the file away'),
    ];
  }
  const place = nearest(dataDir);
  if (!statSync(place).isDirectory()) {
    const message = `DATA_DIR=${dataDir} cannot be made: ${place} is no directory`;
    return [fault(check, message, 'set DATA_DIR to another directory')];
  }
  try {
    accessSync(place, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    return [notWritable(place, error)];
  }
  if (found === undefined) return [ok(check, `${dataDir} is made by the first start`)];
  const findings = [
    ...checkUse(config, dataDir, running),
    ...checkFiles(dataDir),
    ...checkMove(dataDir),
    ...secrets.flatMap((name) => checkSecret(config, dataDir, name)),
  ];
  if (findings.length > 0) return findings;
  return [
    ok(check, running.use === 'taken' ? `${dataDir}, in use by the platform that runs` : dataDir),
  ];
}

/** A start is refused while another process has the directory. */
function checkUse(config: Config, dataDir: string, running: Running): Finding[] {
  if (running.use === 'unknown') {
    const file = join(dataDir, 'skillwright.lock');
    return [fault(check, `${file} is damaged`, 'delete it while no platform uses the directory')];
  }
  if (running.use === 'free' || isOwnPlatform(config, running)) return [];
  const { ports } = running;
  const other =
    ports.length === 0 ? 'another process' : `the platform with PORT=${ports.join(', ')}`;
  const message = `${dataDir} is in use by ${other}`;
  return [fault(check, message, 'stop it, or set DATA_DIR to another directory')];
}

function notWritable(path: string, error: unknown): Finding {
  if ((error as NodeJS.ErrnoException).code === 'EROFS') {
    const remedy = 'mount it for writing, or set DATA_DIR to a directory elsewhere';
    return fault(check, `${path} is on a file system that is mounted read-only`, remedy);
  }
  const remedy = 'give it to the user that runs the platform, or set DATA_DIR to another directory';
  return fault(check, `${path} cannot be written by this user`, remedy);
}

/** A start by another user, such as root, leaves files that this one cannot write. */
function checkFiles(dataDir: string): Finding[] {
  for (const name of [
    'skillwright.db',
    'skillwright.db-wal',
    'skillwright.db-shm',
    'skillwright.lock',
  ]) {
    const file = join(dataDir, name);
    if (!existsSync(file)) continue;
    try {
      accessSync(file, constants.R_OK | constants.W_OK);
    } catch (error) {
      return [notWritable(file, error)];
    }
  }
  return [];
}

const remedies = {
  'admin-secret': 'restore it, or delete it: the next start makes a new one',
  'encryption-key': 'restore it from where you keep a copy',
};
type Secret = keyof typeof remedies;
const secrets = ['admin-secret', 'encryption-key'] as const;

function checkMove(dataDir: string): Finding[] {
  try {
    refuseMovedDirectory(dataDir);
    return [];
  } catch (error) {
    const [message = '', ...remedy] = (error as Error).message.split(': ');
    return [fault(check, message, remedy.join(': '))];
  }
}

/** A start takes a secret of the environment before that of a file. */
function checkSecret(config: Config, dataDir: string, name: Secret): Finding[] {
  const file = join(dataDir, name);
  const given = name === 'admin-secret' ? config.adminSecret : config.encryptionKey;
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined || given !== null) return [];
  if (!stats.isFile()) return [fault(check, `${file} is no file`, 'move it away')];
  const text = readFileSync(file, 'utf8').trim();
  const isValid =
    name === 'admin-secret' ? isAdminSecret(text) : 'value' in readEncryptionKey(text);
  if (!isValid) {
    const message = text === '' ? `${file} is empty` : `${file} is damaged`;
    return [fault(check, message, remedies[name])];
  }
  const isOpen = (stats.mode & 0o077) !== 0;
  return isOpen ? [warning(check, `${file} can be read by others`, `chmod 600 ${file}`)] : [];
}

const mebibyte = 1024 * 1024;
const freeLeast = 256 * mebibyte;
const freeEnough = 2_048 * mebibyte;

/** In a cluster the data is elsewhere. */
export function checkDisk(config: Config, runtime: Runtime): Finding[] {
  if (!config.isEmbedded) return [];
  const place = nearest(resolve(config.dataDir));
  const { free, total } = runtime.diskOf(place);
  if (total === 0) {
    const remedy = 'set DATA_DIR to a directory elsewhere';
    return [fault('disk', `The file system of ${place} holds no files`, remedy)];
  }
  const message = `${Math.floor(free / mebibyte)} MiB are free on the disk of ${place}`;
  const remedy = 'make room, or set shorter retention (docs/configuration.md)';
  if (free < freeLeast) return [fault('disk', message, remedy)];
  return [free < freeEnough ? warning('disk', message, remedy) : ok('disk', message)];
}

/** The path itself, or the directory in which a start would make it. */
function nearest(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearest(dirname(path));
}
