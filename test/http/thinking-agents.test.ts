/** Agents that a model gives tasks to, as tools (docs/agents.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inTurn, type Reply, type ScriptedRequest } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import {
  asks,
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
} from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;
const asking = (agent: string, task: string, id?: string) => ({
  toolCalls: [{ name: `agent__${agent}`, input: { task }, ...(id === undefined ? {} : { id }) }],
});
const usage = { prompt: 100, completion: 10 };

/** Replies by the instructions of the agent that asks: each agent's in turn. */
function byAgent(replies: Readonly<Record<string, readonly Reply[]>>) {
  const scripts = Object.entries(replies).map(([name, own]) => [name, inTurn(...own)] as const);
  return (request: ScriptedRequest) => {
    const script = scripts.find(([name]) => request.system.startsWith(`You are ${name}.`))?.[1];
    return script === undefined ? { text: 'Who is asked?' } : script(request);
  };
}

/** An organization whose agent `thinker` may give tasks to `researcher`. */
async function newTeam(more: object = {}, key: Record<string, unknown> = {}): Promise<Thinker> {
  const thinker = await newThinker(world.platform, { instructions: 'You are lead.' }, key);
  await thinker.post('/api/agents', {
    id: 'researcher',
    name: 'Researcher',
    description: 'Finds things out.',
    instructions: 'You are researcher.',
    model: 'anthropic/test',
    skills: ['text/*'],
  });
  const named = await thinker.put('/api/agents/thinker', { agents: ['researcher'], ...more });
  expect(named.body.agents).toEqual(['researcher']);
  return thinker;
}

test("another agent is a tool: it works with its own model and instructions as a job of the caller's", async () => {
  const team = await newTeam();
  const before = soFar();
  world.provider.script(
    byAgent({
      lead: [
        { ...asking('researcher', 'How deep is it?'), usage },
        { text: 'It is 7 m deep.', usage },
      ],
      researcher: [{ text: '7 metres', usage }],
    }),
  );

  const job = await team.task('Describe the harbour');

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'It is 7 m deep.' } });
  const [first, second, third] = since(before);
  const offer = first?.body.tools.find((tool: Body) => tool.function.name === 'agent__researcher');
  expect(offer.function).toMatchObject({
    description: 'Gives the agent Researcher a task and returns its answer. Finds things out.',
    parameters: {
      ...{ type: 'object', required: ['task'] },
      properties: { timeout_ms: { minimum: 1_000, maximum: 86_400_000 } },
    },
  });
  expect(second).toMatchObject({ protocol: 'messages' });
  expect(second?.system).toMatch(/^You are researcher\./);
  expect(second?.tools).not.toContain('agent__researcher');
  expect(third?.toolResults).toEqual(['7 metres']);
  const steps = await team.steps(job.job_id);
  expect(steps).toMatchObject([
    { kind: 'model', step: 1 },
    { kind: 'tool', step: 2, name: 'agent/researcher', status: 'completed', parent_step_id: 1 },
    { kind: 'run', step: 3, name: 'agent/researcher', status: 'completed', parent_step_id: 2 },
    { kind: 'model' },
  ]);
  expect(steps[2].waits_for).toMatchObject({
    job_id: expect.any(String),
    agent_id: 'researcher',
    skill: 'agent/v1.0/run-task',
    status: 'completed',
    token_stats: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
  });
  const { body: child } = await team.get(`/api/jobs/${steps[2].waits_for.job_id}`);
  expect(child).toMatchObject({
    agent_id: 'researcher',
    parent_job_id: job.job_id,
    status: 'completed',
  });
  expect(job.token_stats.total_tokens).toBe(220);
  expect(job.nested_token_stats.total_tokens).toBe(110);
  expect(job.total_token_stats).toMatchObject({ prompt_tokens: 300, total_tokens: 330 });
});

test('a job and its conversation show the tokens of agents on all levels below, which no day counts twice', async () => {
  const team = await newTeam({}, {});
  await team.post('/api/agents', { id: 'reader', instructions: 'You are reader.' });
  await team.put('/api/agents/researcher', { agents: ['reader'] });
  world.provider.script(
    byAgent({
      lead: [
        { ...asking('researcher', 'Ask'), usage },
        { text: 'Done.', usage },
      ],
      researcher: [
        { ...asking('reader', 'Read'), usage },
        { text: 'Found.', usage },
      ],
      reader: [{ text: 'Read.', usage: null }],
    }),
  );

  const job = await team.task('Go');

  expect(job.token_stats).toMatchObject({ total_tokens: 220, tokens_are_partial: false });
  const nested = { total_tokens: 220, tokens_are_partial: true, cost_is_partial: true };
  const total = { total_tokens: 440, tokens_are_partial: true, cost_is_partial: true };
  expect(job.nested_token_stats).toMatchObject(nested);
  expect(job.total_token_stats).toMatchObject(total);
  const { body: conversation } = await team.get(`/api/conversations/${job.conversation_id}`);
  expect(conversation).toMatchObject({
    token_stats: { total_tokens: 220 },
    nested_token_stats: nested,
    total_token_stats: total,
  });
  const run = (await team.steps(job.job_id)).find(({ kind }) => kind === 'run');
  expect(run.waits_for).toMatchObject({
    token_stats: { total_tokens: 220, tokens_are_partial: false },
    total_token_stats: nested,
  });
  const { body: child } = await team.get(`/api/jobs/${run.waits_for.job_id}`);
  expect(child).toMatchObject({
    token_stats: { total_tokens: 220 },
    nested_token_stats: { total_tokens: null },
  });
  const path = `/admin/usage?organization_id=${team.organization}&owner_kind=`;
  for (const kind of ['api_key', 'user', 'skill']) {
    const { body } = await world.platform.admin('GET', `${path}${kind}`);
    expect(body.data).toMatchObject([{ total_tokens: 440, calls: 5, unreported_calls: 1 }]);
  }
});

describe('the tokens of a tree of agents', () => {
  const tokensMax = 60_000;
  let small: Thinkers;
  beforeAll(async () => {
    small = await startThinkers({ environment: { AGENT_TOKENS_MAX: String(tokensMax) } });
  });
  afterAll(() => small.stop());

  test('are bounded together as those of one agent are; the first one is told and can say so', async () => {
    const team = await newThinker(small.platform, { instructions: 'You are lead.' });
    const { body: created } = await team.post('/api/agents', {
      id: 'researcher',
      instructions: 'You are researcher.',
    });
    await team.put('/api/agents/thinker', { agents: [created.id] });
    const before = small.provider.requests.length;
    const heavy = { prompt: 12_000, completion: 1_000 };
    let asked = 0;
    small.provider.script((request) => {
      if (request.system.startsWith('You are researcher.')) return { text: 'Found.', usage: heavy };
      if (/used up/.test(request.toolResults.at(-1) ?? '')) {
        return { text: 'That is all that I know.', usage };
      }
      asked += 1;
      return { ...asking('researcher', `Question ${asked}`, `call_${asked}`), usage };
    });

    const job = await team.task('Go');

    expect(job).toMatchObject({
      status: 'completed',
      output: { answer: 'That is all that I know.' },
    });
    expect(job.total_token_stats.total_tokens).toBeLessThanOrEqual(tokensMax);
    // Each of the other agent's jobs alone is far from its bound.
    expect(asked).toBeGreaterThan(2);
    expect(asked).toBeLessThan(6);
    const told = small.provider.requests.at(-1)?.toolResults.at(-1);
    expect(told).toBe(
      'agent/researcher could not finish: the tokens or the money that it may use are used up (budget_exceeded)',
    );
    expect(small.provider.requests.length).toBeGreaterThan(before);
    const steps = await team.steps(job.job_id);
    const refused = steps.find(({ kind, status }) => kind === 'tool' && status === 'failed');
    expect(refused.error).toMatchObject({
      code: 'budget_exceeded',
      message: expect.stringMatching(
        `^The tree of agents below the job ${job.job_id} has used [0-9,]+ of its 48,000 tokens`,
      ),
    });
  });

  /** The jobs of four tasks at a time, oldest first. Each takes ten turns; the four have 48,000 tokens together. */
  async function fourTasks(heavy: { prompt: number; completion: number }): Promise<Body[]> {
    const team = await newThinker(small.platform, { instructions: 'You are lead.' });
    await team.post('/api/agents', {
      id: 'researcher',
      instructions: 'You are researcher.',
      skills: ['text/*'],
    });
    await team.put('/api/agents/thinker', { agents: ['researcher'] });
    const count = { name: 'text__word-count__v1_0', input: { text: 'a b' } };
    small.provider.script((request) => {
      if (request.system.startsWith('You are lead.')) {
        if (request.toolResults.length > 0) return { text: 'Done.', usage };
        const tasks = ['One', 'Two', 'Three', 'Four'];
        return {
          toolCalls: tasks.map((task, i) => ({
            name: 'agent__researcher',
            input: { task },
            id: `call_${i}`,
          })),
          usage,
        };
      }
      const turns = request.messages.filter(({ role }) => role === 'assistant').length;
      return turns < 9 ? { toolCalls: [count], usage: heavy } : { text: 'Found.', usage: heavy };
    });

    const job = await team.task('Go');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
    expect(job.total_token_stats.total_tokens).toBeLessThanOrEqual(tokensMax);
    const { body } = await team.get('/api/jobs?agent_id=researcher');
    const ids: string[] = body.data.map(({ job_id }: Body) => job_id).toSorted();
    return Promise.all(ids.map(async (id) => (await team.get(`/api/jobs/${id}`)).body));
  }

  test('are left to the first of several tasks at a time where they become scarce, so that it finishes', async () => {
    const [first, ...later] = await fourTasks({ prompt: 1_500, completion: 270 });

    expect(first.status).toBe('completed');
    const failed = later.filter(({ status }: Body) => status === 'failed');
    expect(failed).not.toEqual([]);
    for (const { error } of failed) expect(error.message).toContain(' of its 48,000 tokens');
  });

  test('are enough for several tasks at a time that fit together', async () => {
    const jobs = await fourTasks({ prompt: 1_040, completion: 60 });

    expect(jobs.map(({ status }) => status)).toEqual(Array(4).fill('completed'));
  });

  test('of one job are not those of the next one, and agents alone have what they had', async () => {
    const team = await newThinker(small.platform, { instructions: 'You are lead.' });
    await team.post('/api/agents', { id: 'researcher', instructions: 'You are researcher.' });
    await team.put('/api/agents/thinker', { agents: ['researcher'] });
    const heavy = { prompt: 12_000, completion: 1_000 };
    let turn = 0;
    small.provider.script((request) => {
      if (request.system.startsWith('You are researcher.')) return { text: 'Found.', usage: heavy };
      turn += 1;
      return turn % 3 === 0
        ? { text: 'Done.', usage }
        : { ...asking('researcher', 'Ask', `call_${turn}`), usage };
    });

    for (let n = 0; n < 3; n += 1) {
      expect(await team.task(`Go ${n}`)).toMatchObject({ output: { answer: 'Done.' } });
    }
  });
});

test('a budget that another agent has used up is told to the model without its amounts, which are on record', async () => {
  const team = await newTeam();
  const before = soFar();
  await team.put('/api/agents/researcher/budget', { tokens_per_day: 7 });
  world.provider.script(
    byAgent({ lead: [asking('researcher', 'Try'), { text: 'It could not.' }], researcher: [] }),
  );

  const job = await team.task('Go');

  expect(job).toMatchObject({ status: 'completed', output: { answer: 'It could not.' } });
  const [told] = since(before).at(-1)?.toolResults ?? [];
  expect(told).toMatch(/budget_exceeded/);
  expect(told).not.toMatch(/\d/);
  const said = JSON.stringify(await team.messages(job.conversation_id));
  expect(said).not.toContain('of its 7 tokens');
  const steps = await team.steps(job.job_id);
  const amount = expect.stringContaining('7 tokens');
  expect(steps[1]).toMatchObject({
    kind: 'tool',
    error: { code: 'budget_exceeded', message: amount },
  });
  const run = steps.find(({ kind }) => kind === 'run');
  const { body: child } = await team.get(`/api/jobs/${run.waits_for.job_id}`);
  expect(child.error).toMatchObject({ code: 'budget_exceeded', message: amount });
});

test('the tokens of another agent are charged to it and to the one that asked it', async () => {
  const team = await newTeam();
  world.provider.script(
    byAgent({
      lead: [
        { ...asking('researcher', 'Ask'), usage },
        { text: 'Done.', usage },
      ],
      researcher: [{ text: 'Found.', usage }],
    }),
  );

  await team.task('Go');

  const used = async (agent: string) =>
    (await team.get(`/api/agents/${agent}/usage`)).body.days.map(
      ({ total_tokens }: Body) => total_tokens,
    );
  expect(await used('thinker')).toEqual([330]);
  expect(await used('researcher')).toEqual([110]);
});

test('the caller holds no executor meanwhile, and cancelling it cancels the other agent', async () => {
  const team = await newTeam();
  const held = Promise.withResolvers<void>();
  world.provider.script(
    byAgent({
      lead: [asking('researcher', 'Wait')],
      researcher: [{ text: 'Late.', until: held.promise }],
    }),
  );
  const jobId = await team.begin('Go');
  await team.jobIn(jobId, 'waiting');
  const [waiting] = (await team.get(`/api/jobs/${jobId}/steps?status=waiting`)).body.data;

  await team.post(`/api/jobs/${jobId}/cancel`);

  const { body: child } = await team.jobIn(waiting.waits_for.job_id, 'cancelled');
  expect(child.status).toBe('cancelled');
  held.resolve();
});

test('what goes wrong with another agent is told to the model: its failure, its absence, its pause', async () => {
  const team = await newTeam();
  const before = soFar();
  const script = () =>
    byAgent({
      lead: [asking('researcher', 'Try'), { text: 'It failed.' }],
      researcher: [{ fault: { status: 400 } }],
    });
  world.provider.script(script());
  const failed = await team.task('Go');
  await team.put('/api/agents/researcher', { status: 'paused' });
  world.provider.script(script());
  const paused = await team.task('Go again');

  expect([failed.status, paused.status]).toEqual(['completed', 'completed']);
  const told = since(before).map(({ toolResults }) => toolResults[0]);
  expect(told[2]).toMatch(/openai|anthropic|refus|400/i);
  expect(told.at(-1)).toMatch(/There is no tool "agent__researcher"/);
});

test('a call of another agent can need an approval, like the skill that gives it the task', async () => {
  const team = await newTeam({ approvals: ['agent/v1.0/run-task'] });
  world.provider.script(
    byAgent({
      lead: [asking('researcher', 'Look'), { text: 'Seen.' }],
      researcher: [{ text: 'Found.' }],
    }),
  );
  const jobId = await team.begin('Go');
  await team.jobIn(jobId, 'waiting');
  const { body } = await team.get(`/api/approvals?status=pending&job_id=${jobId}`);
  expect(body.data[0]).toMatchObject({
    title: 'Call agent/researcher?',
    details: { task: 'Look' },
  });

  await team.post(`/api/approvals/${body.data[0].approval_id}/approve`, {});

  const { body: job } = await team.jobIn(jobId, 'completed', 'failed');
  expect(job).toMatchObject({ status: 'completed', output: { answer: 'Seen.' } });
});

test('a key without the scope agent has no agents as tools', async () => {
  const team = await newTeam({ skills: ['text/*'] });
  const key = { organization_id: team.organization, scopes: ['text', 'thinking'] };
  const restricted = await newTenant(world.platform, key);
  const before = soFar();
  world.provider.script(inTurn({ text: 'Alone.' }));

  await restricted.run(asks, { requests: [{ prompt: 'Go', tools: true }] }, team.named);

  expect(since(before)[0]?.tools).not.toContain('agent__researcher');
});

describe('the agents that an agent names', () => {
  const put = (team: Thinker, id: string, agents: string[]) =>
    team.put(`/api/agents/${id}`, { agents });
  const refusal = (message: string) => ({
    status: 400,
    body: { error: 'validation_error', details: [{ field: 'agents', issue: message }] },
  });

  test('have to be there, and none may lead back to it', async () => {
    const team = await newTeam();
    await team.post('/api/agents', { id: 'writer', agents: ['thinker'] });

    expect(await put(team, 'thinker', ['stranger'])).toMatchObject(
      refusal('there is no agent stranger'),
    );
    expect(await put(team, 'thinker', ['thinker'])).toMatchObject(
      refusal('lead back to thinker: thinker → thinker'),
    );
    expect(await put(team, 'researcher', ['writer'])).toMatchObject(
      refusal('lead back to researcher: researcher → writer → thinker → researcher'),
    );
    const own = await team.post('/api/agents', { id: 'own', agents: ['own'] });
    expect(own).toMatchObject(refusal('lead back to own: own → own'));
    expect((await put(team, 'thinker', ['a b'])).status).toBe(400);
  });

  test('cannot be deleted meanwhile', async () => {
    const team = await newTeam();

    const refused = await team.delete('/api/agents/researcher');
    await put(team, 'thinker', []);
    const deleted = await team.delete('/api/agents/researcher');

    expect(refused).toMatchObject({ status: 409, body: { error: 'conflict' } });
    expect(refused.body.message).toContain('other agents');
    expect(deleted.status).toBe(204);
  });
});
