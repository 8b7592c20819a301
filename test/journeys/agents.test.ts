/**
 * One journey of an agent that thinks, as its owner sees it: a key, an agent with a model and tools,
 * a task whose answer is followed as it comes, the conversation that goes on, what all of it cost,
 * and the budget that ends it, of which a signed webhook tells.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { engines } from '../support/databases.ts';
import { follow } from '../support/event-stream.ts';
import { anId, aTimestamp } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { startPlatform } from '../support/platform.ts';
import { type RecordedRequest, startScriptedProvider } from '../support/scripted-provider.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { environmentOf } from '../support/thinkers.ts';
import { receiverAuthority, startTlsReceiver } from '../support/tls-receiver.ts';
import { expectSigned } from '../support/webhooks.ts';

const note = 'The harbour is closed on Mondays.';
const schema = {
  type: 'object',
  required: ['words'],
  additionalProperties: false,
  properties: { words: { type: 'integer' } },
};
const runTask = 'agent/v1.0/run-task';
const named = { 'x-agent-id': 'clerk' };

describe.each(await engines())('on $name', (engine) => {
  /** A platform on this database with a provider, and a receiver that it may reach. */
  async function world() {
    const provider = await startScriptedProvider();
    onTestFinished(() => provider.close());
    const receiver = await startTlsReceiver();
    onTestFinished(() => receiver.close());
    const { at } = await engine.place();
    const platform = await startPlatform({
      clock: manualClock(),
      environment: {
        ...(engine.name === 'PostgreSQL' ? { DATABASE_URL: at } : {}),
        ...environmentOf(provider),
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      },
      parts: { webhookEgress: { ca: receiverAuthority } },
    });
    onTestFinished(() => platform.stop());
    return { provider, receiver, platform };
  }

  test('an agent solves a task with a tool, its memory and a schema, continues the conversation, and uses up its budget', async () => {
    const { provider, receiver, platform } = await world();
    const tenant = await newTenant(platform, { scopes: ['agent', 'text'] });
    const owner = await newTenant(platform, { organization_id: tenant.organization });
    const agent = await owner.post('/api/agents', {
      id: 'clerk',
      instructions: 'You keep notes on harbours.',
      model: 'openai/test',
      skills: ['text/*', 'web/*'],
      // The run is for no user.
      memory: 'read_write',
    });
    expect(agent.status).toBe(201);
    const webhook = await tenant.post('/api/agent-webhooks', {
      agent_id: 'clerk',
      url: `${receiver.origin}/hook`,
      events: ['agent.error'],
    });
    expect(webhook.status).toBe(201);

    // A task: the model calls two tools, and answers piece by piece.
    const goOn = Promise.withResolvers<void>();
    provider.script(({ toolResults }) =>
      toolResults.length === 0
        ? {
            toolCalls: [
              { name: 'text__word-count__v1_0', input: { text: note } },
              { name: 'remember', input: { content: note } },
            ],
          }
        : { text: '{"words": 6}', piece: 4, hold: { after: 2, until: goOn.promise } },
    );
    const task = `Count the words of this note, and keep it: ${note}`;
    const jobId = await tenant.start(runTask, { task, schema }, named);

    const stream = await follow(`${platform.url}/api/jobs/${jobId}/events`, {
      'x-api-key': tenant.key,
    });
    await stream.event(({ event }) => event === 'token', 'a piece of the answer');
    expect((await tenant.get(`/api/jobs/${jobId}`)).body.status).toBe('active');
    goOn.resolve();
    const events = await stream.ended;

    const types = events.map(({ event }) => event);
    expect(types.slice(0, 2)).toEqual(['status', 'status']);
    expect(types.filter((type) => type === 'tool_call' || type === 'tool_result').sort()).toEqual([
      'tool_call',
      'tool_call',
      'tool_result',
      'tool_result',
    ]);
    expect(types.slice(-2)).toEqual(['message', 'status']);
    const pieces = events.filter(({ event }) => event === 'token').map(({ data }) => data.text);
    expect(pieces.length).toBeGreaterThanOrEqual(2);
    expect(pieces.join('')).toBe('{"words": 6}');

    const job = (await tenant.get(`/api/jobs/${jobId}`)).body;
    expect(job).toMatchObject({
      status: 'completed',
      output: { answer: '{"words": 6}', output: { words: 6 } },
      token_stats: costOf(provider.requests),
    });
    const [first] = provider.requests;
    expect(first?.system).toContain('You keep notes on harbours.');
    expect(first?.tools).toEqual(expect.arrayContaining(['remember', 'text__word-count__v1_0']));
    // The agent's patterns allow it, the key does not.
    expect(first?.tools).not.toContain('web__fetch-page__v1_0');
    const memories = (await tenant.get('/api/agents/clerk/memories')).body;
    expect(memories).toMatchObject({ total: 1, data: [{ content: note }] });
    const steps = (await tenant.get(`/api/jobs/${jobId}/steps`)).body;
    expect(steps.data).toMatchObject([
      { kind: 'model', name: 'openai/test', turn: 1, status: 'completed' },
      { kind: 'tool', name: 'text/v1.0/word-count', turn: 1, status: 'completed' },
      { kind: 'tool', name: 'remember', turn: 1, status: 'completed' },
      { kind: 'model', name: 'openai/test', turn: 2, status: 'completed' },
    ]);

    // The conversation goes on: the model is shown what was said.
    provider.script(() => ({ text: 'Six words.' }));
    const conversation = job.conversation_id as string;
    const goingOn = { ...named, 'x-conversation-id': conversation };
    const again = (await tenant.run(runTask, { task: 'Say it in words.' }, goingOn)).body;

    expect(again).toMatchObject({ status: 'completed', output: { answer: 'Six words.' } });
    expect(again.conversation_id).toBe(conversation);
    const shown = provider.requests.at(-1)?.messages;
    expect(shown).toMatchObject([
      { role: 'system' },
      { role: 'user', content: task },
      { role: 'assistant', tool_calls: [{}, {}] },
      { role: 'tool' },
      { role: 'tool' },
      { role: 'assistant', content: '{"words": 6}' },
      { role: 'user', content: 'Say it in words.' },
    ]);
    const roles = await rolesIn(tenant, conversation);
    expect(roles).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant', 'user', 'assistant']);

    // What it cost: conversation, agent and key say the same, and so does the provider.
    const cost = costOf(provider.requests);
    const tokens = (await tenant.get(`/api/conversations/${conversation}/token-usage`)).body;
    expect(tokens).toMatchObject(cost);
    const usage = (await tenant.get('/api/agents/clerk/usage')).body;
    expect(usage.days).toEqual([expect.objectContaining({ ...cost, calls: 3 })]);
    expect(usage.today).toMatchObject({ used: cost.total_tokens, reserved: 0 });
    const ofKey = (await platform.admin('GET', `/admin/api-keys/${tenant.keyId}/usage`)).body;
    expect(ofKey.days).toEqual([expect.objectContaining({ ...cost, calls: 3 })]);

    // A budget that is used up ends a job before anything is spent.
    const limit = cost.total_tokens;
    const budget = await owner.put('/api/agents/clerk/budget', { tokens_per_day: limit });
    expect(budget.status).toBe(200);
    const refused = (await tenant.run(runTask, { task: 'And in French?' }, goingOn)).body;

    expect(refused).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'budget_exceeded', message: expect.stringContaining('agent clerk') },
      token_stats: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    });
    expect(provider.requests).toHaveLength(3);

    const delivery = await receiver.receivedWhere(({ json }) => json.event === 'agent.error');
    expect(delivery.json).toEqual({
      id: anId,
      event: 'agent.error',
      timestamp: aTimestamp,
      agent_id: 'clerk',
      data: { ...refused.error, job_id: refused.job_id },
    });
    expectSigned(delivery, webhook.body.secret);
  });
});

/** What the provider counted. */
function costOf(requests: readonly RecordedRequest[]) {
  const sum = (part: 'prompt' | 'completion') =>
    requests.reduce((all, { cost }) => all + (cost?.[part] ?? 0), 0);
  const [prompt_tokens, completion_tokens] = [sum('prompt'), sum('completion')];
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

async function rolesIn(tenant: Tenant, conversation: string): Promise<string[]> {
  const messages = (await tenant.get(`/api/conversations/${conversation}/messages`)).body;
  return messages.map(({ role }: { role: string }) => role);
}
