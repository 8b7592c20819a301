import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

const tokensMax = 2_000;
let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({
    environment: { AGENT_TOKENS_MAX: `${tokensMax}`, MODEL_OUTPUT_TOKENS: '64' },
  });
});
afterAll(() => world.stop());

/** Every call uses what it may at most, and a moment; the most calls at a time, and their tokens. */
function scripted() {
  const seen = { underWay: 0, most: 0, tokens: 0, calls: 0 };
  world.provider.script(async ({ body }) => {
    const usage = { prompt: 10, completion: body.max_tokens ?? body.max_completion_tokens };
    seen.underWay += 1;
    seen.most = Math.max(seen.most, seen.underWay);
    await new Promise((resolve) => setImmediate(resolve));
    seen.underWay -= 1;
    seen.tokens += usage.prompt + usage.completion;
    seen.calls += 1;
    return { text: 'Done.', usage };
  });
  return seen;
}

const refused = {
  code: 'skill_execution_failed',
  message: expect.stringMatching(/The run has used \d+ tokens, of at most 2000/),
};

describe('a run that asks for more tokens than AGENT_TOKENS_MAX', () => {
  test('uses no more than these, sixteen calls at a time, and every call gets an answer or an error', async () => {
    const { asking } = await newThinker(world.platform);
    const seen = scripted();
    const requests = Array.from({ length: 60 }, (_, n) => ({ prompt: `Ask ${n}`, caught: true }));

    const job = await asking([requests]);

    expect(job.status).toBe('completed');
    const answers = job.output[0];
    const failures = answers.filter((one: { code?: string }) => one.code !== undefined);
    expect(answers).toHaveLength(60);
    expect(failures).toHaveLength(60 - seen.calls);
    for (const failure of failures) expect(failure).toMatchObject(refused);
    expect(seen.most).toBeLessThanOrEqual(16);
    expect(seen.tokens).toBeLessThanOrEqual(tokensMax);
    expect(seen.tokens).toBeGreaterThan(tokensMax - 200);
  });

  test('ends, however its tools nest', async () => {
    const { asking } = await newThinker(world.platform, { skills: ['thinking/*'] });
    const name = toolNamed('thinking/v1.0/asks');
    const inner = Array.from({ length: 40 }, (_, n) => ({ prompt: `Inner ${n}`, caught: true }));
    world.provider.script(({ tools, toolResults }) =>
      tools.length === 0 || toolResults.length > 0
        ? { text: 'Done.', usage: { prompt: 10, completion: 40 } }
        : { toolCalls: [{ name, input: { requests: [inner] } }] },
    );
    const outer = Array.from({ length: 4 }, (_, n) => ({
      prompt: `Outer ${n}`,
      tools: true,
      caught: true,
    }));

    const job = await asking([outer]);

    expect(job.status).toBe('completed');
    expect(job.output[0].at(-1)).toMatchObject(refused);
  });
});
