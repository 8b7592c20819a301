/**
 * Runs beside the tests, once for all of them, and shares one PostgreSQL and one Redis among those
 * that only want a database: started for the first that asks, stopped at the end. It also keeps a
 * migrated database of each kind for the tests to copy, since sixteen migrations take longer than most
 * tests. The other side of its Unix socket is `shared-servers.ts`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { openSqlite, sqliteFile } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { findChromium } from './chromium.ts';
import { findPostgres, nameOf, type PostgresServer, startPostgres } from './postgres.ts';
import { findPrometheus } from './prometheus.ts';
import { findRedis, type RedisServer, startRedis } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    serverBroker: string;
  }
}

const programs = {
  PostgreSQL: { find: findPostgres, packageName: 'postgresql' },
  Redis: { find: findRedis, packageName: 'redis-server' },
  Chromium: { find: findChromium, packageName: 'chromium' },
  Prometheus: { find: findPrometheus, packageName: 'prometheus' },
};

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-broker-'));
  const socket = join(directory, 'socket');
  let postgres: Promise<PostgresServer> | undefined;
  /** The name of the database that is copied. */
  let template: Promise<string> | undefined;
  let sqlite: Promise<string> | undefined;
  let redis: Promise<RedisServer> | undefined;
  /** Those of Redis have numbers; each is given to one test. */
  let redisDatabases = 0;
  const reported = new Set<string>();

  function isInstalled(name: string): boolean {
    const program = programs[name as keyof typeof programs];
    if (program.find() !== undefined) return true;
    if (!reported.has(name)) {
      reported.add(name);
      process.stderr.write(
        `\n${name} is not installed (Debian: apt-get install ${program.packageName}): the tests that need it are skipped.\n`,
      );
    }
    return false;
  }

  async function answer(path: string): Promise<unknown> {
    if (path.startsWith('/database')) {
      // Vacuuming hundreds of databases that live for a second takes a fiftieth of the processor.
      postgres ??= startPostgres({ isShared: true, settings: { autovacuum: 'off' } });
      const server = await postgres;
      if (path === '/database/empty') return await server.createDatabase();
      if (path === '/database/migrated') {
        template ??= migratedPostgres(server);
        return await server.createDatabase(undefined, await template);
      }
      return await server.dropDatabase(`${server.url(path.slice('/database/drop/'.length))}`);
    }
    if (path === '/sqlite/migrated') {
      sqlite ??= migratedSqlite(join(directory, 'sqlite'));
      return await sqlite;
    }
    if (path === '/redis') {
      redis ??= startRedis();
      return `${(await redis).url}/${redisDatabases++}`;
    }
    return isInstalled(path.slice(1));
  }

  const server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (value) => respond(response, 200, value ?? null),
      (error) => respond(response, 500, String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  project.provide('serverBroker', socket);

  return async () => {
    server.close();
    server.closeAllConnections();
    await (await postgres)?.close();
    await (await redis)?.close();
    rmSync(directory, { recursive: true, force: true });
  };
}

async function migratedPostgres(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase();
  await (await openPostgres(url, createLogger('silent'))).close();
  return nameOf(url);
}

async function migratedSqlite(directory: string): Promise<string> {
  await (await openSqlite(directory, createLogger('silent'))).close();
  return sqliteFile(directory);
}

function respond(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { connection: 'close' }).end(JSON.stringify(value));
}
