/** Two kinds of load: as much as some connections can ask for, and a steady pace. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { installTools, toolFile } from '../scripts/tools.ts';

const run = promisify(execFile);

export interface Request {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Flood {
  /** Requests answered with 2xx. */
  readonly accepted: number;
  /** Any other answer, and connections that broke. */
  readonly refused: number;
  readonly generator: 'wrk' | 'autocannon';
}

/** Sends as fast as `connections` that are kept alive are answered. */
export async function flood(target: Request, seconds: number, connections = 32): Promise<Flood> {
  const load = (await hasWrk()) ? wrk : autocannon;
  return await load(target, seconds, connections);
}

async function hasWrk(): Promise<boolean> {
  try {
    await run('wrk', ['--version']);
    return true;
  } catch (error) {
    // It prints its version with exit code 1; only a missing program is an error of the system.
    return (error as { code?: unknown }).code !== 'ENOENT';
  }
}

async function wrk(target: Request, seconds: number, connections: number): Promise<Flood> {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-wrk-'));
  try {
    const script = join(directory, 'request.lua');
    const headers = Object.entries(target.headers).map(
      ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
    );
    writeFileSync(
      script,
      [
        `wrk.method = "${target.method}"`,
        ...headers,
        `wrk.body = ${JSON.stringify(target.body ?? '')}`,
      ].join('\n'),
    );
    const { stdout } = await run('wrk', [
      ...['-t', '1', '-c', String(connections), '-d', `${seconds}s`],
      // Its own 2 s would count slow answers as broken connections.
      ...['--timeout', '30s', '-s', script, target.url],
    ]);
    const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1] ?? 0);
    const refused = number(/Non-2xx or 3xx responses: (\d+)/);
    const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/
      .exec(stdout)
      ?.slice(1)
      .reduce((sum, errors) => sum + Number(errors), 0);
    return {
      accepted: number(/(\d+) requests in/) - refused,
      refused: refused + (broken ?? 0),
      generator: 'wrk',
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function autocannon(target: Request, seconds: number, connections: number): Promise<Flood> {
  await installTools('bench/tools');
  const { stdout } = await run(
    process.execPath,
    [
      toolFile('bench/tools', 'autocannon/autocannon.js'),
      ...['--json', '-c', String(connections), '-d', String(seconds), '-m', target.method],
      ...Object.entries(target.headers).flatMap(([name, value]) => ['-H', `${name}=${value}`]),
      ...(target.body === undefined ? [] : ['-b', target.body]),
      target.url,
    ],
    { maxBuffer: 16 * 1024 * 1024 },
  );
  const result = JSON.parse(stdout) as { '2xx': number; non2xx: number; errors: number };
  return {
    accepted: result['2xx'],
    refused: result.non2xx + result.errors,
    generator: 'autocannon',
  };
}

/**
 * Sends `perSecond` requests a second, each at its moment whether or not earlier ones were
 * answered, and returns the milliseconds that each took. Any answer but `status` is an error.
 */
export async function pace(
  target: Request,
  options: { perSecond: number; seconds: number; status: number },
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const count = Math.round(options.perSecond * options.seconds);
  const begun = performance.now();
  const answers: Promise<number>[] = [];
  for (let i = 0; i < count; i += 1) {
    const wait = begun + (i * 1000) / options.perSecond - performance.now();
    if (wait > 0) await pause(wait);
    answers.push(timed(agent, target, options.status));
  }
  try {
    return await Promise.all(answers);
  } finally {
    agent.destroy();
  }
}

function timed(agent: Agent, target: Request, expected: number): Promise<number> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const headers: IncomingHttpHeaders = { ...target.headers };
    if (target.body !== undefined) headers['content-length'] = String(target.body.length);
    request(target.url, { method: target.method, agent, headers }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode === expected) resolve(performance.now() - begun);
        else reject(new Error(`${target.url}: ${response.statusCode} instead of ${expected}`));
      });
    })
      .on('error', reject)
      .end(target.body);
  });
}

/** The value below which `share` of the samples lie. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}
