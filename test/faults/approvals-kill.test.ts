/**
 * A process that is killed around a question and its decision: it is asked once, the decision counts, and the
 * approved call of a tool is made at most once.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { callingTools, startScriptedProvider } from '../support/scripted-provider.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { newTenant } from '../support/tenant.ts';
import { environmentOf, toolNamed } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const effect = 'staged/v1.0/effect';
const kills = rounds(1, 20);
const named = { 'x-agent-id': 'asker' };

test(`killed ${kills === 1 ? 'once' : `${kills} times`} after the question and after the decision, it asks once and acts at most once`, {
  timeout: 240_000,
}, async () => {
  beginChance();
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-approvals-'));
  const provider = await startScriptedProvider();
  const environment = {
    ...environmentOf(provider),
    SKILLS_DIR: join(import.meta.dirname, '../fixtures/skills/staged'),
    EXECUTORS: '1',
  };
  const start = () => startProcess(join(directory, 'data'), environment);
  let platform = await start();
  onTestFinished(async () => {
    platform.signal('SIGKILL');
    await provider.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const killAndStart = async () => {
    platform.signal('SIGKILL');
    await platform.exit;
    platform = await start();
  };
  const key = (await newTenant(platform)).key;
  const send = (method: string, path: string, body?: unknown) =>
    platform.request(method, path, {
      key,
      headers: named,
      ...(body === undefined ? {} : { body }),
    });
  await send('POST', '/api/agents', { id: 'asker', skills: ['staged/*'], approvals: [effect] });

  for (let round = 0; round < kills; round++) {
    const log = join(directory, `effects-${round}`);
    provider.script(
      callingTools([{ name: toolNamed(effect), input: { log, waitMs: 50 } }], 'Done.'),
    );
    const accepted = await send('POST', '/api/agent/v1.0/run-task', { task: 'Act' });
    const jobId = accepted.body.job_id as string;
    const asked = async () => (await send('GET', `/api/approvals?job_id=${jobId}`)).body;
    const pending = () =>
      waitFor(async () => (await asked()).data[0], { describe: 'the question' });
    const { approval_id } = await pending();
    await pause(randomInteger(0, 50));
    await killAndStart();
    expect(await asked()).toMatchObject({ total: 1, data: [{ approval_id, status: 'pending' }] });

    const decided = await send('POST', `/api/approvals/${approval_id}/approve`);
    expect(decided.status).toBe(200);
    await pause(randomInteger(0, 150));
    await killAndStart();

    const { body: job } = await platform.jobIn(key, jobId, 'completed', 'failed');
    expect(job).toMatchObject({ status: 'completed' });
    expect(await asked()).toMatchObject({ total: 1, data: [{ status: 'approved' }] });
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
    const begun = lines.filter((line) => line.startsWith('begin')).length;
    const { body: steps } = await send('GET', `/api/jobs/${jobId}/steps`);
    const [, tool] = steps.data;
    expect(begun).toBeLessThanOrEqual(1);
    if (tool.status === 'completed') expect(begun).toBe(1);
    else expect(tool).toMatchObject({ status: 'failed', error: { code: 'approval_used' } });
  }
});
