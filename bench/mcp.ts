/** The platform as an MCP server: a call beside the same call over REST, the list of many tools, idle memory. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Figure, lessIsBetter, round } from './figures.ts';
import { median, pace, percentile, type Request } from './load.ts';
import { residentMiB, temporaryDirectory, withServer } from './server.ts';
import { echo } from './throughput.ts';

const skillsListed = 500;
const perSecond = 50;
const seconds = 15;
const settleMs = 8_000;
const revision = '2026-07-28';

export async function measureMcp(): Promise<Figure[]> {
  return [...(await calls()), await list(), await memory()];
}

/** A request of the protocol's newest revision. */
function request(
  { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  method: string,
  params: Record<string, unknown>,
): Request {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const { name } = params;
  return {
    method: 'POST',
    url: `${url}/mcp`,
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      'mcp-method': method,
      ...(name === undefined ? {} : { 'mcp-name': String(name) }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  };
}

/** In turns, so that both meet the same machine. */
async function calls(): Promise<Figure[]> {
  return await withServer('ours', async (server) => {
    const targets = {
      rest: echo(server, { prefer: 'wait=10' }),
      mcp: request(server, 'tools/call', { name: 'util__echo', arguments: { text: 'hello' } }),
    };
    const p50: Record<keyof typeof targets, number[]> = { rest: [], mcp: [] };
    for (let turn = 0; turn < 4; turn += 1) {
      for (const kind of ['rest', 'mcp'] as const) {
        const samples = await pace(targets[kind], { perSecond, seconds: seconds / 3, status: 200 });
        // The first turn warms up.
        if (turn > 0) p50[kind].push(percentile(samples, 0.5));
      }
    }
    const [rest, mcp] = [median(p50.rest), median(p50.mcp)];
    const figure = lessIsBetter('tools/call over MCP, p50, more than REST', mcp - rest, {
      ...{ floor: 3, goal: 1.5, unit: 'ms' },
    });
    return [{ ...figure, shown: `${round(mcp - rest)} ms (${round(mcp)} and ${round(rest)})` }];
  });
}

async function list(): Promise<Figure> {
  const skills = temporaryDirectory();
  try {
    writeSkills(skills);
    return await withServer(
      'ours',
      async (server) => {
        const target = request(server, 'tools/list', {});
        await pace(target, { perSecond: 20, seconds: 5, status: 200 });
        const samples = await pace(target, { perSecond: 20, seconds, status: 200 });
        return lessIsBetter(
          `tools/list with ${skillsListed} skills, p99`,
          percentile(samples, 0.99),
          {
            ...{ floor: 20, goal: 5, unit: 'ms' },
          },
        );
      },
      { SKILLS_DIR: skills },
    );
  } finally {
    rmSync(skills, { recursive: true, force: true });
  }
}

/** Skills with schemas of a usual size. */
function writeSkills(directory: string): void {
  mkdirSync(directory, { recursive: true });
  for (let i = 0; i < skillsListed; i += 1) {
    const field = { type: 'string', description: 'A text of this skill, as it is to be used.' };
    const schema = {
      type: 'object',
      required: ['first'],
      properties: { first: field, second: field, third: { type: 'integer', minimum: 0 } },
    };
    writeFileSync(
      join(directory, `skill-${i}.js`),
      `export default ${JSON.stringify({
        category: 'bench',
        name: `skill-${i}`,
        version: 'v1.0',
        displayName: `Skill ${i}`,
        description:
          'Does what a skill of the bench does, and says so in a sentence of usual length.',
        parameters: schema,
        output: schema,
      }).slice(0, -1)}, run: (input) => input };\n`,
    );
  }
}

/** What the first request of the protocol costs in memory; a platform without one pays nothing. */
async function memory(): Promise<Figure> {
  const before = await withServer('ours', async ({ pid }) => {
    await pause(settleMs);
    return residentMiB(pid);
  });
  const after = await withServer('ours', async (server) => {
    const { url, headers, body } = request(server, 'tools/list', {});
    await (await fetch(url, { method: 'POST', headers, body: body ?? null })).text();
    await pause(settleMs);
    return residentMiB(server.pid);
  });
  return lessIsBetter('memory of MCP, after its first request', after - before, {
    ...{ floor: 40, goal: 25, unit: 'MiB' },
  });
}
