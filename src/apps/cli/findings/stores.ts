/** The database and Redis: whether they answer, fit this program, and agree about the time. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { Inspected, InspectedPostgres } from '../../../adapters/database/inspect.ts';
import type { Config } from '../../../core/config/config.ts';
import { postgresFault, redisFault } from './connection-faults.ts';
import { checkSealed } from './encryption.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'database';
/** Clocks further apart than this are set wrongly, rather than read at different moments. */
const skewMaxMs = 5_000;
/** The oldest servers that the platform runs with (docs/cluster.md). */
const oldestPostgres = 13;
const oldestRedis = [6, 2] as const;

export interface CheckedDatabase {
  readonly findings: readonly Finding[];
  /** Providers of models that some organization has credentials for. */
  readonly providers: readonly string[];
}

export function checkDatabase(config: Config, now: () => number): Promise<CheckedDatabase> {
  const { databaseUrl } = config;
  return databaseUrl === null
    ? checkSqlite(config, now())
    : checkPostgres(config, databaseUrl, now);
}

async function checkSqlite(config: Config, now: number): Promise<CheckedDatabase> {
  const { dataDir } = config;
  const { inspectSqlite } = await import('../../../adapters/database/inspect.ts');
  let found: Awaited<ReturnType<typeof inspectSqlite>>;
  try {
    found = await inspectSqlite(dataDir);
  } catch (error) {
    return { findings: [unreadable(dataDir, error as Error)], providers: [] };
  }
  if (found === null) {
    const none = ok(check, 'There is none yet; the first start makes it');
    return { findings: [none], providers: [] };
  }
  const findings = [...checkMigrations(found), ...checkSealed(config, found.sealed)];
  if (found.newestJobAt !== null && found.newestJobAt > now + skewMaxMs) {
    const message = `The newest job was accepted at ${new Date(found.newestJobAt).toISOString()}, which this machine's clock has not reached`;
    findings.push(fault('clock', message, 'set the clock'));
  }
  return { findings, providers: found.providers };
}

/** A file that another user owns is not damaged. */
function unreadable(dataDir: string, { message }: Error): Finding {
  const file = join(dataDir, 'skillwright.db');
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
  } catch {
    const remedy = 'give it, and what is beside it, to the user that runs the platform';
    return fault(check, `${file} cannot be read and written by this user`, remedy);
  }
  const what = `The database in ${dataDir} cannot be read (${message})`;
  return fault(check, what, 'restore a backup (docs/backup.md)');
}

async function checkPostgres(
  config: Config,
  url: string,
  now: () => number,
): Promise<CheckedDatabase> {
  const { inspectPostgres } = await import('../../../adapters/database/inspect.ts');
  try {
    const found = await inspectPostgres(url, now);
    const findings = [
      ...checkMigrations(found),
      ...checkServer(found),
      ...checkSealed(config, found.sealed),
    ];
    if (Math.abs(found.aheadMs) > skewMaxMs) {
      const message = `The clocks of this machine and of PostgreSQL are ${Math.round(Math.abs(found.aheadMs) / 1_000)} s apart`;
      findings.push(warning('clock', message, 'set them by NTP'));
    }
    return { findings, providers: found.providers };
  } catch (error) {
    return { findings: [postgresFault(url, error)], providers: [] };
  }
}

function checkServer({ version, isReadOnly, mayCreate }: InspectedPostgres): Finding[] {
  const findings: Finding[] = [];
  const major = Math.floor(version / 10_000);
  if (major < oldestPostgres) {
    const message = `PostgreSQL ${major} is older than ${oldestPostgres}`;
    findings.push(fault(check, message, 'upgrade it'));
  }
  if (isReadOnly) {
    const message = 'PostgreSQL takes no writes: it is a standby, or set to read only';
    findings.push(fault(check, message, 'name the primary in DATABASE_URL'));
  } else if (!mayCreate) {
    const message = 'The user of DATABASE_URL may not create tables, so no start can upgrade';
    findings.push(fault(check, message, 'make it the owner of the database, or of its schema'));
  }
  return findings;
}

function checkMigrations({ missing, unknown, isEmpty }: Inspected): Finding[] {
  const [newest] = unknown;
  if (newest !== undefined) {
    const message = `It was last used by a newer Skillwright (migration ${newest})`;
    return [fault(check, message, 'run that version, or restore a backup from before the upgrade')];
  }
  if (isEmpty) return [ok(check, 'It is empty; the first start makes its tables')];
  if (missing.length === 0) return [ok(check, 'It has the schema of this version')];
  const message = `The next start runs ${missing.length} migrations`;
  return [warning(check, message, 'back up first, and try them with skillwright upgrade --check')];
}

export async function checkRedis({ redisUrl }: Config): Promise<Finding[]> {
  if (redisUrl === null) return [];
  const { inspectRedis } = await import('../../../adapters/redis/inspect.ts');
  try {
    const { version, isReplica, isFull, evictionPolicy } = await inspectRedis(redisUrl);
    const { host } = new URL(redisUrl);
    const at = `Redis at ${host}`;
    if (version !== null && isOlder(version, oldestRedis)) {
      return [fault('redis', `${at} is older than ${oldestRedis.join('.')}`, 'upgrade it')];
    }
    if (isReplica) {
      const remedy = 'name the primary in REDIS_URL';
      return [fault('redis', `${at} is a replica and takes no writes`, remedy)];
    }
    if (isFull) {
      const message = `The memory of ${at} is full`;
      return [fault('redis', message, 'raise maxmemory, or find out what else is stored there')];
    }
    return [ok('redis', 'It answers'), ...checkEviction(evictionPolicy)];
  } catch (error) {
    return [redisFault(redisUrl, error)];
  }
}

function isOlder(
  [major, minor]: readonly [number, number],
  [least, minorLeast]: readonly [number, number],
) {
  return major < least || (major === least && minor < minorLeast);
}

/** A Redis that evicts keys loses hints and counters of limits without a word. */
function checkEviction(policy: string | null): Finding[] {
  if (policy === null || policy === 'noeviction') return [];
  const message = `Redis evicts keys when its memory is full (maxmemory-policy ${policy})`;
  return [warning('redis', message, 'set maxmemory-policy noeviction')];
}
