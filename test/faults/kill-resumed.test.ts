/** A job that goes on from the record of a failed one, in a process that is killed: nothing is done or paid twice. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { followingPlans, type Plan } from '../support/thinking-plans.ts';
import {
  type ThinkingProcess,
  thinkingAgents,
  thinkingProcess,
} from '../support/thinking-process.ts';

let own: ThinkingProcess;
beforeEach(async () => {
  own = await thinkingProcess();
});
afterEach(() => own.close());

const never = new Promise<never>(() => {});

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
    await own.start();
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
    await own.start();
    await own.jobIn(body.job_id, 'failed');
    const again = await own.post(`/api/jobs/${body.job_id}/retry`, { resume: true });
    expect(again.status).toBe(202);
    await own.kill();
    provider.script(followingPlans());
    await own.start();
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
  },
);
