import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toolFile } from '../../scripts/tools.ts';
import { runSuite, withKey } from '../support/mcp-conformance.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { isSoak } from '../support/soak.ts';
import { areToolsHere } from '../support/tools.ts';
import { expectedFailures } from './mcp-expected-failures.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const hasSuite = await areToolsHere('scripts/tools/checks');
const hasInspector = isSoak && (await areToolsHere('scripts/tools/inspector'));
let platform: Platform;
let key: string;
let proxy: Awaited<ReturnType<typeof withKey>>;
beforeAll(async () => {
  const fixtures = join(root, 'test/fixtures/skills/mcp');
  const prose = join(root, 'examples/agent-skills');
  platform = await startPlatform({
    skillsDirs: [join(root, 'src/core/skills/catalog/util'), fixtures, prose],
  });
  key = await platform.key();
  proxy = await withKey(platform.url, key);
  // The suite waits 500 ms for some answers, and the first run also waits for the start of an executor.
  const client = await connected('2026-07-28');
  await client.callTool({ name: 'test_logging_tool' });
  await client.close();
});
afterAll(async () => {
  proxy.stop();
  await platform.stop();
});

test.skipIf(!hasSuite).each([
  ['2026-07-28', 50],
  ['2025-11-25', 33],
] as const)(
  'passes the conformance suite of %s, but for the failures with a reason',
  async (revision, size) => {
    const results = await runSuite(proxy.url, '--requirements', revision);
    expect(results.size).toBe(size);
    const failed = [...results].filter(([, result]) => result.failed.length > 0);
    const expected = Object.entries(expectedFailures[revision]);
    expect(Object.fromEntries(failed.map(([name, result]) => [name, result.failed]))).toEqual(
      Object.fromEntries(expected.map(([name, { checks }]) => [name, checks])),
    );
  },
);

test.skipIf(!hasSuite).each(['enumeration', 'manifest', 'directory'])(
  'passes what the suite asks of skills to read: %s',
  async (part) => {
    const results = await runSuite(proxy.url, '--scenario', `sep-2640-skills-${part}`);
    expect([...results.values()].flatMap(({ failed }) => failed)).toEqual([]);
  },
);

describe('the official client', () => {
  test.each(['2026-07-28', '2025-11-25'])('lists and calls tools in %s', async (revision) => {
    const progress: number[] = [];
    const client = await connected(revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('util__echo');
    const echo = await client.callTool({ name: 'util__echo', arguments: { text: 'hi' } });
    expect(echo.structuredContent).toEqual({ text: 'hi' });
    const onprogress = (one: { progress: number }) => void progress.push(one.progress);
    await client.callTool({ name: 'test_tool_with_progress' }, { onprogress });
    expect(progress).toEqual([0, 0.5, 1]);
    await client.close();
  });

  test('has its person decide an approval, and is told of the result', async () => {
    const client = await connected('2026-07-28');
    const asked: string[] = [];
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params.message);
      return { action: 'accept', content: {} };
    });
    const result = await client.callTool({ name: 'test_input_required_result_multi_round' });
    expect(result.content).toEqual([{ type: 'text', text: 'Both steps are done.' }]);
    expect(asked).toEqual(['Step 1: What is your name?', 'Step 2: What is your favorite color?']);
    await client.close();
  });
});

// On each change the official client does.
test.runIf(hasInspector)('the inspector lists and calls tools', async () => {
  const inspector = toolFile(
    'scripts/tools/inspector',
    '@modelcontextprotocol/inspector/clients/launcher/build/index.js',
  );
  const inspect = async (...args: string[]) => {
    const address = [`${platform.url}/mcp`, '--transport', 'http', '--header', `x-api-key: ${key}`];
    const { stdout } = await run(process.execPath, [inspector, '--cli', ...address, ...args]);
    return JSON.parse(stdout);
  };
  const { tools } = await inspect('--method', 'tools/list');
  expect(tools.map(({ name }: { name: string }) => name)).toContain('util__echo');
  const call = ['--tool-name', 'util__echo', '--tool-arg', 'text=hi'];
  const result = await inspect('--method', 'tools/call', ...call);
  expect(result).toMatchObject({ structuredContent: { text: 'hi' } });
});

/** A client of a revision, with a person behind it. */
async function connected(revision: string): Promise<Client> {
  const mode = revision === '2026-07-28' ? { pin: revision } : 'legacy';
  const client = new Client(
    { name: 'a test', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
  );
  const headers = { authorization: `Bearer ${key}` };
  const url = new URL(`${platform.url}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}
