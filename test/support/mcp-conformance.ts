/**
 * The conformance suite of the Model Context Protocol against a platform, and the checks that it is expected to
 * fail. The suite takes no key, so a proxy adds one.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toolFile } from '../../scripts/tools.ts';

const suite = toolFile('scripts/tools/checks', '@modelcontextprotocol/conformance/dist/index.js');
/** The bound of one run. */
const runMs = 100_000;

/** A proxy before a platform that adds a key to each request. */
export async function withKey(url: string, key: string): Promise<{ url: string; stop(): void }> {
  const { hostname, port } = new URL(url);
  const proxy = createServer((request, response) => {
    const headers = { ...request.headers, 'x-api-key': key };
    const { method, url: path } = request;
    const up = send({ hostname, port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    response.on('close', () => up.destroy());
    up.on('error', () => response.destroy());
    request.pipe(up);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const address = proxy.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop() {
      proxy.close();
      proxy.closeAllConnections();
    },
  };
}

/** What a scenario came to: the ids of its checks that passed and failed. */
export interface ScenarioResult {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

/** Runs what a revision requires of servers, or one scenario; the results by scenario. */
export async function runSuite(
  url: string,
  ...asked: readonly ['--requirements' | '--scenario', string]
): Promise<ReadonlyMap<string, ScenarioResult>> {
  const output = mkdtempSync(join(tmpdir(), 'mcp-conformance-'));
  try {
    const options = ['server', '--url', `${url}/mcp`, ...asked, '-o', output];
    await new Promise<void>((resolve) => {
      // It ends with 1 where a check fails; which ones may, the test decides.
      execFile(process.execPath, [suite, ...options], { timeout: runMs }, () => resolve());
    });
    return new Map(readdirSync(output).map((folder) => [nameOf(folder), resultIn(output, folder)]));
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

/** `server-NAME-2026-11-23T08-38-28-554Z`. */
function nameOf(folder: string): string {
  return folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\dZ-]+$/, '');
}

function resultIn(output: string, folder: string): ScenarioResult {
  const text = readFileSync(join(output, folder, 'checks.json'), 'utf8');
  const checks = JSON.parse(text) as { id: string; status: string }[];
  const idsOf = (status: string) =>
    [...new Set(checks.filter((one) => one.status === status).map(({ id }) => id))].toSorted();
  return { passed: idsOf('SUCCESS'), failed: idsOf('FAILURE') };
}
