/** What was sent: prompts of calls of models that are kept by setting (docs/prompts.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { inTurn, type Reply, type ScriptedRequest } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
beforeAll(async () => {
  const other = await startThinkers();
  const { url, openaiBaseUrl, anthropicBaseUrl } = other.provider;
  await other.platform.stop();
  const { platform } = await startThinkers({
    environment: {
      OPENAI_BASE_URL: openaiBaseUrl,
      ANTHROPIC_BASE_URL: anthropicBaseUrl,
      NEWER_BASE_URL: openaiBaseUrl,
      NEWER_API_KEY: 'sk-newer-0123456789',
      NEWER_PROTOCOL: 'responses',
      GEMINI_BASE_URL: `${url}/v1beta`,
      GEMINI_API_KEY: 'gemini-0123456789',
      BEDROCK_BASE_URL: url,
      BEDROCK_API_KEY: 'bedrock-0123456789',
      MISTRAL_BASE_URL: `${url}/mistral/v1`,
      MISTRAL_PROTOCOL: 'mistral',
      MISTRAL_API_KEY: 'mistral-0123456789',
      MODEL_ABILITIES: JSON.stringify(
        ['openai/small', 'anthropic/small'].map((model) => ({ model, context_tokens: 4_000 })),
      ),
      MODEL_OUTPUT_TOKENS: '400',
      RETRY_BACKOFF_MS: '1',
    },
  });
  world = { ...other, platform };
});
afterAll(async () => {
  await world.platform.stop();
  await world.provider.close();
});

const wordCount = toolNamed('text/v1.0/word-count');
const usage = { prompt: 500, completion: 20 };
const isSummary = ({ system }: ScriptedRequest) => system.startsWith('You summarize');
/** Calls the tool so many times with long texts, then answers; summarizes when asked to. */
function working(times: number, long = 5): (request: ScriptedRequest) => Reply {
  let turns = 0;
  return (request) => {
    if (isSummary(request)) return { text: 'The summary so far.', usage };
    turns += 1;
    if (turns > times) return { text: 'Done.', usage };
    const text = `These are the words of turn ${turns}. `.repeat(long);
    return { toolCalls: [{ name: wordCount, id: `callid${100 + turns}`, input: { text } }], usage };
  };
}

const keeping = (fields: Parameters<typeof newThinker>[1] & object = {}) =>
  newThinker(world.platform, {
    skills: ['text/v1.0/word-count'],
    instructions: 'Count what you are given. '.repeat(20),
    keep_prompts: true,
    ...fields,
  });
async function promptsOf(thinker: Thinker, jobId: string, query = '') {
  const steps = await thinker.steps(jobId);
  const calls = steps.filter(({ kind }) => kind === 'model' || kind === 'summary');
  return Promise.all(
    calls.map(async ({ step }) => {
      const answer = await thinker.get(`/api/jobs/${jobId}/steps/${step}/prompt${query}`);
      expect(answer.status, answer.text).toBe(200);
      return answer.body;
    }),
  );
}
const settingsPath = (thinker: Thinker) => `/admin/organizations/${thinker.organization}/prompts`;
async function setting(thinker: Thinker, body: object) {
  const answer = await world.platform.admin('PUT', settingsPath(thinker), body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
}
const settingsOf = async (thinker: Thinker) =>
  (await world.platform.admin('GET', settingsPath(thinker))).body;
const sentSince = (before: number) => world.provider.requests.slice(before);
/** The body as it came: what addresses name the scripted provider has added to it. */
function textOf({ protocol, body }: ScriptedRequest): string {
  const { model: _model, stream: _stream, ...own } = body;
  return JSON.stringify(protocol === 'gemini' || protocol === 'converse' ? own : body);
}
const sent = () => world.provider.requests.length;

describe('a kept prompt', () => {
  test.each([
    'openai/test',
    'anthropic/test',
    'newer/gpt-5',
    'gemini/gemini-2.5-pro',
    'bedrock/anthropic.claude-opus-5',
    'mistral/mistral-large',
  ])('of %s is what the provider got, in each turn', async (model) => {
    const thinker = await keeping({ model });
    const before = sent();
    world.provider.script(working(4));

    const job = await thinker.task('Count FOUR texts, "quoted" </script> \u{1f600}');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
    const requests = sentSince(before);
    const prompts = await promptsOf(thinker, job.job_id);
    expect(prompts.map(({ state }) => state)).toEqual(Array(5).fill('kept'));
    // With the order of members: it is the text that was sent.
    expect(prompts.map(({ body }) => JSON.stringify(body))).toEqual(requests.map(textOf));
    for (const [i, prompt] of prompts.entries()) {
      expect(prompt.bytes).toBe(Buffer.byteLength(textOf(requests[i] as ScriptedRequest)));
      if (i > 0) expect(prompt.stored_bytes).toBeLessThan(prompt.bytes / 2);
    }
  });

  test('is kept of summaries, of failed calls and of fallbacks, too', async () => {
    const thinker = await keeping({
      model: 'openai/small',
      fallback_models: ['anthropic/small'],
      model_settings: { wait_for_provider: 0 },
    });
    const before = sent();
    const work = working(12, 30);
    world.provider.script((request) =>
      request.index === before ? { fault: { status: 400 } } : work(request),
    );
    const refused = await thinker.task('Count');
    world.provider.script((request) =>
      request.protocol === 'chat' && !isSummary(request) && request.index % 3 === 0
        ? { fault: { status: 404 } }
        : work(request),
    );

    const job = await thinker.task('Count TWELVE texts');

    expect(refused.status).toBe('failed');
    const requests = sentSince(before);
    const prompts = [
      ...(await promptsOf(thinker, refused.job_id)),
      ...(await promptsOf(thinker, job.job_id)),
    ];
    expect(requests.some(isSummary)).toBe(true);
    expect(new Set(requests.map(({ protocol }) => protocol)).size).toBe(2);
    expect(prompts.map(({ body }) => JSON.stringify(body))).toEqual(requests.map(textOf));
    expect(prompts.filter(({ turn }) => turn === 0)).toHaveLength(
      requests.filter(isSummary).length,
    );
  });

  test('is shown as the difference to the turn before', async () => {
    const thinker = await keeping();
    world.provider.script(working(2));
    const job = await thinker.task('Count TWO texts');

    const [first, second, third] = await promptsOf(thinker, job.job_id, '?as=difference');

    expect(first).toMatchObject({ since_step: null, body: null, difference: { same: [] } });
    const messages = first.difference.changed.find(
      ({ field }: { field: string }) => field === 'messages',
    );
    expect(messages).toMatchObject({ same: 0, removed: [], same_at_end: 0 });
    expect(messages.added.at(-1)).toEqual({ role: 'user', content: 'Count TWO texts' });
    expect(second.since_step).toBe(first.step);
    expect(third.since_step).toBe(second.step);
    expect(third.difference.same).toEqual(
      expect.arrayContaining(['model', 'tools', 'stream', 'stream_options']),
    );
    expect(third.difference.changed).toMatchObject([
      {
        field: 'messages',
        same: messages.added.length + 2,
        removed: [],
        added: [{ role: 'assistant', tool_calls: [{ id: 'callid102' }] }, { role: 'tool' }],
        same_at_end: 0,
      },
    ]);
  });

  test('goes on from those before a wait, in another claim of the job', async () => {
    const thinker = await keeping({ approvals: ['text/v1.0/word-count'] });
    const before = sent();
    world.provider.script(working(2));
    const jobId = await thinker.begin('Count TWO texts');
    for (let i = 0; i < 2; i++) {
      const path = `/api/approvals?status=pending&job_id=${jobId}`;
      const describe = 'the call waits for its approval';
      const asked = await waitFor(async () => (await thinker.get(path)).body.data[0], { describe });
      // Unloaded, so that the next turn is of another claim.
      await thinker.jobIn(jobId, 'waiting');
      await thinker.post(`/api/approvals/${asked.approval_id}/approve`, {});
    }
    await thinker.jobIn(jobId, 'completed');

    const prompts = await promptsOf(thinker, jobId);

    expect(prompts.map(({ body }) => JSON.stringify(body))).toEqual(sentSince(before).map(textOf));
    for (const { stored_bytes, bytes } of prompts.slice(1)) {
      expect(stored_bytes).toBeLessThan(bytes / 2);
    }
  });

  test('is that of the job that was resumed, for the calls that it made', async () => {
    const thinker = await keeping();
    const work = working(1);
    world.provider.script((request) =>
      request.toolResults.length > 0 ? { fault: { status: 400 } } : work(request),
    );
    const failed = await thinker.task('Count');
    world.provider.script(work);

    const answer = await thinker.post(`/api/jobs/${failed.job_id}/retry`, { resume: true });
    await thinker.jobIn(answer.body.job_id, 'completed');

    const states = (await promptsOf(thinker, answer.body.job_id)).map(({ state }) => state);
    expect(states).toEqual(['earlier_job', 'kept']);
  });
});

describe('whose prompts are kept', () => {
  const stateOf = async (thinker: Thinker) => {
    world.provider.script(inTurn({ text: 'Fine.' }));
    const { job_id } = await thinker.task('Say fine');
    const [step] = (await thinker.steps(job_id)).filter(({ kind }) => kind === 'model');
    const { body } = await thinker.get(`/api/jobs/${job_id}/steps/${step.step}/prompt`);
    expect(body.state).toBe(step.prompt);
    expect(body.body === null).toBe(step.prompt !== 'kept');
    return step.prompt;
  };

  test('none, until an agent asks for it; the administrator can set it for an organization', async () => {
    const thinker = await keeping({ keep_prompts: false });
    expect(await settingsOf(thinker)).toEqual({
      organization_id: thinker.organization,
      keep: null,
      retention_days: null,
      max_mb: null,
      applied: { keep: 'agents', retention_days: 7, max_mb: 256 },
      kept_bytes: 0,
    });

    expect(await stateOf(thinker)).toBe('off');
    await thinker.put('/api/agents/thinker', { keep_prompts: true });
    expect(await stateOf(thinker)).toBe('kept');
    await setting(thinker, { keep: 'off' });
    expect(await stateOf(thinker)).toBe('off');
    await thinker.put('/api/agents/thinker', { keep_prompts: false });
    const set = await setting(thinker, { keep: 'all', retention_days: 2 });
    expect(set.applied).toEqual({ keep: 'all', retention_days: 2, max_mb: 256 });
    expect(await stateOf(thinker)).toBe('kept');
    const back = await setting(thinker, { keep: null });
    expect(back).toMatchObject({ keep: null, retention_days: 2, applied: { keep: 'agents' } });
    expect(await stateOf(thinker)).toBe('off');
  });

  test('as many as the organization may have; further ones are not, and the step says so', async () => {
    const thinker = await keeping();
    await setting(thinker, { max_mb: 0 });
    expect(await stateOf(thinker)).toBe('cap_reached');
    expect((await settingsOf(thinker)).kept_bytes).toBe(0);

    await setting(thinker, { max_mb: 1 });
    expect(await stateOf(thinker)).toBe('kept');
    expect((await settingsOf(thinker)).kept_bytes).toBeGreaterThan(500);
  });

  test.each([
    [{ keep: 'some' }, 'keep'],
    [{ retention_days: 0 }, 'retention_days'],
    [{ max_mb: -1 }, 'max_mb'],
    [{ max_mb: 1.5 }, 'max_mb'],
  ])('%j is 400', async (body, field) => {
    const thinker = await keeping();
    expectInvalid(await world.platform.admin('PUT', settingsPath(thinker), body), field);
  });

  test('of an unknown organization is 404, and without the admin secret 401', async () => {
    const path = '/admin/organizations/no-such-one/prompts';
    expectRefusal(await world.platform.admin('GET', path), 404, 'not_found');
    expectRefusal(await world.platform.admin('PUT', path, { keep: 'all' }), 404, 'not_found');
    const without = await world.platform.request('GET', path);
    expectRefusal(without, 401, 'authentication_required');
  });
});

describe('the prompt of a step', () => {
  test('is 404 for another organization, another step and no job; 400 for a wrong query', async () => {
    const thinker = await keeping();
    world.provider.script(working(1));
    const { job_id } = await thinker.task('Count');
    const steps = await thinker.steps(job_id);
    const ofKind = (kind: string) => steps.find((step) => step.kind === kind);
    const path = (step: number | string, job = job_id) => `/api/jobs/${job}/steps/${step}/prompt`;
    const call = ofKind('model').step;
    const stranger = await newTenant(world.platform);

    expect((await thinker.get(path(call))).status).toBe(200);
    expect(ofKind('tool').prompt).toBe(null);
    expectRefusal(await stranger.get(path(call)), 404, 'not_found');
    expectRefusal(await thinker.get(path(ofKind('tool').step)), 404, 'not_found');
    expectRefusal(await thinker.get(path(999)), 404, 'not_found');
    expectRefusal(await thinker.get(path(call, stranger.keyId)), 404, 'not_found');
    expectInvalid(await thinker.get(`${path(call)}?as=words`), 'as');
    for (const step of ['first', '0', '01', '1e0', '9'.repeat(20)]) {
      expectRefusal(await thinker.get(path(step)), 404, 'not_found');
    }
    expectRefusal(await world.platform.request('GET', path(call)), 401, 'authentication_required');
  });

  test('is erased with its user, and its bytes count no more', async () => {
    const thinker = await keeping();
    world.provider.script(working(1));
    const user = { 'x-user-id': 'ada' };
    const { job_id } = await thinker.task('Count MY-SECRET-WORDS', {}, user);
    const [{ step }] = (await thinker.steps(job_id)).filter(({ kind }) => kind === 'model');
    const path = `/api/jobs/${job_id}/steps/${step}/prompt`;
    expect((await thinker.get(path)).text).toContain('MY-SECRET-WORDS');
    expect((await settingsOf(thinker)).kept_bytes).toBeGreaterThan(0);

    const erased = await thinker.send('DELETE', '/api/users/ada/data');

    expect(erased.status, erased.text).toBe(200);
    expectRefusal(await thinker.get(path), 404, 'not_found');
    expect((await settingsOf(thinker)).kept_bytes).toBe(0);
  });
});
