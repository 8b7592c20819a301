import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Platform } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { type Script, startScriptedProvider } from '../support/scripted-provider.ts';
import { environmentOf, newThinker, providerKeys } from '../support/thinkers.ts';

const secrets = Object.values(providerKeys);

/** Faults in which a provider repeats the key that it was sent; in the end an answer. */
const statuses = [400, 401, 403, 404, 200];
const repeating: Script = ({ headers, messages }) => {
  const status = Number(/answer (\d+)/.exec(JSON.stringify(messages))?.[1]);
  if (status === 200) return { text: 'Fine.' };
  const message = `Incorrect key: ${headers['x-api-key'] ?? headers['authorization']}`;
  return { fault: { status, body: { error: { message } } } };
};

test('the keys of providers are in no answer, event, log line, metric or file', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-secrets-'));
  const provider = await startScriptedProvider();
  onTestFinished(async () => {
    await provider.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const platform = await startProcess(dataDir, {
    ...environmentOf(provider),
    ...{ LOG_LEVEL: 'trace', EXECUTORS: '1', RETRY_BACKOFF_MS: '10' },
  });
  const seen: string[] = [];
  for (const model of ['openai/test', 'anthropic/test']) {
    const thinker = await newThinker(platform as unknown as Platform, { model });
    provider.script(repeating);
    for (const status of statuses) {
      const job = await thinker.task(`answer ${status}`);
      expect(job.status).toBe(status === 200 ? 'completed' : 'failed');
      for (const path of [
        `/api/jobs/${job.job_id}`,
        `/api/jobs/${job.job_id}/steps`,
        `/api/jobs/${job.job_id}/events`,
        `/api/conversations/${job.conversation_id}/messages`,
        '/api/agents/thinker',
        '/metrics',
        '/health',
      ]) {
        seen.push((await thinker.get(path)).text);
      }
    }
  }
  await platform.stop();

  const sent = provider.requests.map(({ headers }) => JSON.stringify(headers)).join();
  const files = readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name), 'latin1'));
  for (const secret of secrets) {
    expect(sent).toContain(secret);
    for (const text of [...seen, ...files, platform.output()]) expect(text).not.toContain(secret);
  }
});
