/**
 * Runs beside the tests, once for all of them, and shares one PostgreSQL and one Redis among those
 * that only want a database: started for the first that asks, stopped at the end. The other side of its
 * Unix socket is `shared-servers.ts`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { findChromium } from './chromium.ts';
import { findPostgres, type PostgresServer, startPostgres } from './postgres.ts';
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
    if (path === '/database') {
      postgres ??= startPostgres();
      return await (await postgres).createDatabase();
    }
    if (path === '/redis') {
      redis ??= startRedis();
      return `${(await redis).url}/${redisDatabases++}`;
    }
    return isInstalled(path.slice(1));
  }

  const server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (value) => respond(response, 200, value),
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

function respond(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { connection: 'close' }).end(JSON.stringify(value));
}
