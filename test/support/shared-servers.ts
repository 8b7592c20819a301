/**
 * What a test file may ask of the servers that all files share. Files that kill or restart a
 * server start one of their own (`postgres.ts`, `redis.ts`).
 *
 *     const here = await isInstalled('PostgreSQL');
 *     describe.skipIf(!here)('…', () => { const url = await freshDatabase(); … });
 */
import { request } from 'node:http';
import { inject } from 'vitest';

/**
 * Whether this machine has the server's program. Where it has not, the run says so once and the
 * caller skips its tests; with `CI=true` this throws instead, since there it must not be missing.
 */
export async function isInstalled(
  name: 'PostgreSQL' | 'Redis' | 'Chromium' | 'Prometheus',
): Promise<boolean> {
  const here = (await ask(`/${name}`)) === true;
  if (!here && process.env['CI'] === 'true') {
    throw new Error(`${name} is not installed, and with CI=true nothing is skipped.`);
  }
  return here;
}

/** The URL of an empty PostgreSQL database that nobody else uses. */
export async function freshDatabase(): Promise<string> {
  return String(await ask('/database'));
}

/** The URL of an empty Redis database that nobody else uses. */
export async function freshRedis(): Promise<string> {
  return String(await ask('/redis'));
}

function ask(path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request({ socketPath: inject('serverBroker'), path }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(body));
        else reject(new Error(`The shared server did not start: ${body}`));
      });
    })
      .on('error', reject)
      .end();
  });
}
