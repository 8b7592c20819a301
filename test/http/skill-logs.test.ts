/** Output of skills in the operator's log, which callers do not see. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { goodDir } from '../fixtures/skills/driver.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { waitFor } from '../support/wait-for.ts';

const lines: Record<string, unknown>[] = [];
let platform: Platform;
let key: string;
beforeAll(async () => {
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) });
  platform = await startPlatform({ skillsDirs: [goodDir], log });
  key = await platform.key();
});
afterAll(() => platform.stop());

const lineOf = (jobId: string, msg: string, field: string) =>
  waitFor(
    () => lines.find((one) => one['job_id'] === jobId && one['msg'] === msg && field in one),
    { describe: () => `${msg} with ${field}; there is ${JSON.stringify(lines)}` },
  );

test('the output of a skill is logged at info, with its job', async () => {
  const { body } = await platform.run(key, 'good/v1.0/prints', { text: 'hello' });

  const line = { level: 30, skill: 'good/v1.0/prints' };
  const printed = await lineOf(body.job_id, 'skill output', 'stdout');
  expect(printed).toMatchObject({ ...line, stdout: 'hello' });
  const loud = await lineOf(body.job_id, 'skill output', 'stderr');
  expect(loud).toMatchObject({ ...line, stderr: 'hello, said loudly' });
});

test('the stack of a skill’s error is in the log line of the failed run, and in no response', async () => {
  const { body, text } = await platform.run(key, 'good/v1.0/throws', { what: 'error' });

  expect(body).toMatchObject({ status: 'failed', error: { message: 'it broke' } });
  expect(text).not.toMatch(/throws\.ts/);
  expect(await lineOf(body.job_id, 'a run failed', 'stack')).toMatchObject({
    level: 30,
    skill: 'good/v1.0/throws',
    attempt: 1,
    stack: expect.stringMatching(/it broke\n.*throws\.ts:/),
  });
});
