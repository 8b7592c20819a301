/**
 * A job that goes on from the record of a failed one, and memories that form, in a process that is killed: nothing is done
 * or paid twice.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { followingPlans, type Plan } from '../support/thinking-plans.ts';
import {
  runTask,
  type ThinkingProcess,
  thinkingAgents,
  thinkingProcess,
} from '../support/thinking-process.ts';
import { waitFor } from '../support/wait-for.ts';

let own: ThinkingProcess;
beforeEach(async () => {
  own = await thinkingProcess();
});
afterEach(() => own.close());

const never = new Promise<never>(() => {});

/** What the calls of these jobs were sent, as it is kept. */
async function promptsOf(jobIds: readonly string[]): Promise<string[]> {
  const kept: string[] = [];
  for (const jobId of jobIds) {
    const { body } = await own.get(`/api/jobs/${jobId}/steps?limit=200`);
    for (const { step, kind, prompt } of body.data) {
      if (kind !== 'model') continue;
      expect(['kept', 'earlier_job']).toContain(prompt);
      if (prompt !== 'kept') continue;
      const answer = await own.get(`/api/jobs/${jobId}/steps/${step}/prompt`);
      kept.push(JSON.stringify(answer.body.body));
    }
  }
  return kept;
}

test.each(thinkingAgents)(
  'a resumed job of %s whose process is killed goes on, and so does one that had just been accepted',
  { timeout: 120_000 },
  async (agent) => {
    const { provider } = own;
    const plan: Plan = {
      id: 'resumed',
      turns: [
        [{ note: 'one', log: own.log }, { remember: 'memory one' }],
        [{ note: 'two', log: own.log }],
        [{ note: 'three', log: own.log }],
      ],
    };
    const refusing = followingPlans(({ turn }) => (turn === 2 ? { fault: { status: 400 } } : {}));
    provider.script(refusing);
    await own.start({ KEEP_PROMPTS: 'all' });
    const failed = await own.submit(agent, plan);
    await own.jobIn(failed, 'failed');
    const before = provider.requests.length;

    // Its third turn is under way as the process dies.
    provider.script(followingPlans(({ turn }) => (turn === 2 ? { until: never } : {})));
    const { status, body } = await own.post(`/api/jobs/${failed}/retry`, { resume: true });
    expect(status).toBe(202);
    await provider.received(before + 1);
    await own.kill();
    // Its fourth is refused: it fails, and is resumed in turn by a process that dies at once.
    provider.script(followingPlans(({ turn }) => (turn === 3 ? { fault: { status: 400 } } : {})));
    await own.start({ KEEP_PROMPTS: 'all' });
    await own.jobIn(body.job_id, 'failed');
    const again = await own.post(`/api/jobs/${body.job_id}/retry`, { resume: true });
    expect(again.status).toBe(202);
    await own.kill();
    provider.script(followingPlans());
    await own.start({ KEEP_PROMPTS: 'all' });
    await own.untilAllEnded();

    const { body: job } = await own.get(`/api/jobs/${again.body.job_id}`);
    expect(job).toMatchObject({ status: 'completed', is_resumed: true });
    const begun = own.lines().filter((line) => line.startsWith('begin '));
    expect(begun.map((line) => line.split(' ')[1])).toEqual(['one', 'two', 'three']);
    // Each of the four turns was answered once.
    const answered = provider.requests.filter(
      ({ endedBy, cost }) => endedBy === 'answered' && cost !== null,
    );
    expect(answered).toHaveLength(4);
    // Each call that is on record has its prompt, also the one that a process died of.
    const kept = await promptsOf([failed, body.job_id, again.body.job_id]);
    const sent = provider.requests.map((request) => JSON.stringify(request.body));
    expect(kept.toSorted()).toEqual(sent.toSorted());
  },
);

test('memories form once of each message, whenever the process is killed', {
  timeout: 120_000,
}, async () => {
  const { provider } = own;
  const saidIn = ({ messages }: { messages: readonly { content?: unknown }[] }) =>
    /<conversation>\n(.*)\n<\/conversation>/s.exec(String(messages.at(-1)?.content))?.[1];
  const form = (json: string) => {
    const { messages } = JSON.parse(json) as { messages: { content: string; role: string }[] };
    const ofUser = messages.filter(({ role }) => role === 'user');
    const remember = ofUser.map(({ content }, i) => ({
      ...{ content: `Said ${content}`, tag: 'fact', message: 2 * i + 1, replaces: null },
    }));
    return { text: JSON.stringify({ remember, forget: [] }) };
  };
  const headers = { 'x-agent-id': 'forms', 'x-user-id': 'ada' };
  const memories = async () =>
    (await own.get('/api/agents/forms/memories?user_id=ada')).body.data.map(
      ({ content }: { content: string }) => content,
    );
  const jobs = async () => (await own.get('/api/jobs?skill_name=form-memories')).body;
  await own.start();
  const made = { id: 'forms', model: 'openai/test-model', memory_formation: { quiet_seconds: 0 } };
  expect((await own.post('/api/agents', made)).status).toBe(201);

  provider.script((request) =>
    saidIn(request) === undefined ? { text: 'Yes.' } : { until: never },
  );
  await own.run(runTask, { task: 'one' }, headers);
  await waitFor(() => provider.requests.some((one) => saidIn(one) !== undefined), {
    describe: 'the memories are being formed',
  });
  await own.kill();
  provider.script((request) => {
    const said = saidIn(request);
    return said === undefined ? { text: 'Yes.' } : form(said);
  });
  await own.start();
  await waitFor(async () => (await memories()).length === 1, {
    describe: 'the memory of the first conversation',
    deadlineMs: 60_000,
  });
  await own.run(runTask, { task: 'two' }, headers);
  // Before its job was accepted, or after.
  await own.kill();
  await own.start();
  await waitFor(async () => (await memories()).length === 2, {
    describe: 'the memory of the second conversation',
    deadlineMs: 60_000,
  });
  await own.untilAllEnded();

  expect((await memories()).sort()).toEqual(['Said one', 'Said two']);
  expect((await jobs()).total).toBe(2);
});
