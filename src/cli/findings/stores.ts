/** The database and Redis: whether they answer, fit this program, and agree about the time. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import type { Inspected } from '../../database/inspect.ts';
import { createLogger } from '../../kernel/log.ts';
import type { Redis } from '../../redis/redis.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'database';
/** Clocks further apart than this are set wrongly, rather than read at different moments. */
const skewMaxMs = 5_000;

export function checkDatabase(config: Config, now: number): Finding[] | Promise<Finding[]> {
  return config.databaseUrl === null ? checkSqlite(config, now) : checkPostgres(config.databaseUrl);
}

async function checkSqlite(config: Config, now: number): Promise<Finding[]> {
  const { dataDir } = config;
  const { inspectSqlite } = await import('../../database/inspect.ts');
  let found: ReturnType<typeof inspectSqlite>;
  try {
    found = inspectSqlite(dataDir);
  } catch (error) {
    const message = `The database in ${dataDir} cannot be read (${(error as Error).message})`;
    return [fault(check, message, 'restore a backup (docs/backup.md)')];
  }
  if (found === null) return [ok(check, 'There is none yet; the first start makes it')];
  const findings = checkMigrations(found);
  const key = config.encryptionKey ?? (existsSync(join(dataDir, 'encryption-key')) ? true : null);
  if (found.hasSealedSecrets && key === null) {
    const message = 'Stored secrets are encrypted, and their key is gone';
    findings.push(
      fault('data', message, `restore ${join(dataDir, 'encryption-key')}, or set ENCRYPTION_KEY`),
    );
  }
  if (found.newestJobAt !== null && found.newestJobAt > now + skewMaxMs) {
    const message = `The newest job was accepted at ${new Date(found.newestJobAt).toISOString()}, which this machine's clock has not reached`;
    findings.push(fault('clock', message, 'set the clock'));
  }
  return findings;
}

async function checkPostgres(url: string): Promise<Finding[]> {
  const { inspectPostgres } = await import('../../database/inspect.ts');
  try {
    const found = await inspectPostgres(url);
    const findings = checkMigrations(found);
    if (Math.abs(found.aheadMs) > skewMaxMs) {
      const message = `The clocks of this machine and of PostgreSQL are ${Math.round(Math.abs(found.aheadMs) / 1_000)} s apart`;
      findings.push(warning('clock', message, 'set them by NTP'));
    }
    return findings;
  } catch (error) {
    // Never the address itself, which has the password.
    const { host } = new URL(url);
    const message = `PostgreSQL at ${host} does not answer (${reasonOf(error)})`;
    return [fault(check, message, 'start it, or correct DATABASE_URL')];
  }
}

/** Node tells of several addresses that were tried in an error without a message. */
function reasonOf(error: unknown): string {
  const { message, code } = error as { message: string; code?: string };
  return message || (code ?? 'no reason given');
}

function checkMigrations({ missing, unknown }: Inspected): Finding[] {
  const [newest] = unknown;
  if (newest !== undefined) {
    const message = `It was last used by a newer Skillwright (migration ${newest})`;
    return [fault(check, message, 'run that version, or restore a backup from before the upgrade')];
  }
  if (missing.length === 0) return [ok(check, 'It has the schema of this version')];
  const message = `The next start runs ${missing.length} migrations`;
  return [warning(check, message, 'back up first, and try them with skillwright upgrade --check')];
}

/** A Redis that evicts keys loses hints and counters of limits without a word. */
async function checkEviction({ commands }: Pick<Redis, 'commands'>): Promise<Finding[]> {
  const [, policy] = /^maxmemory_policy:(\S+)/m.exec(await commands.info('memory')) ?? [];
  if (policy === undefined || policy === 'noeviction') return [];
  const message = `Redis evicts keys when its memory is full (maxmemory-policy ${policy})`;
  return [warning('redis', message, 'set maxmemory-policy noeviction')];
}

export async function checkRedis({ redisUrl }: Config): Promise<Finding[]> {
  if (redisUrl === null) return [];
  const { openRedis } = await import('../../redis/redis.ts');
  const redis = openRedis(redisUrl, createLogger('silent'));
  try {
    await redis.opened;
    if (redis.isConnected()) return [ok('redis', 'It answers'), ...(await checkEviction(redis))];
    const message = `Redis at ${new URL(redisUrl).host} does not answer`;
    return [fault('redis', message, 'start it, or correct REDIS_URL')];
  } finally {
    await redis.close();
  }
}
