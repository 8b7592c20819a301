/** The automated part of the demo: a schedule, a push to a code host, webhooks. */
import { createHmac } from 'node:crypto';
import type { Client } from './client.ts';
import { say, sayValue } from './paper.ts';
import type { Receiver } from './receiver.ts';

/** The next minute begins within this, and its slot fires within a second. */
const fireWithinMs = 65_000;
const deliverWithinMs = 10_000;
const pushSecret = 'the-secret-of-the-push';
const push = {
  ref: 'refs/heads/main',
  head_commit: { message: 'Pour the water before the milk' },
};

/** Sets everything up; `show` tells what has come of it, and waits where it has not yet. */
export async function automate(client: Client, receiver: Receiver) {
  const { secret } = await client.post<{ secret: string }>('/api/agent-webhooks', {
    agent_id: 'default',
    url: receiver.url,
    events: ['scheduled_job.completed', 'skill.completed'],
  });
  receiver.useSecret(secret);
  const schedule = await client.post<{ id: string; next_run_at: string }>('/api/scheduled-jobs', {
    agent_id: 'default',
    skill_category: 'notes',
    skill_name: 'customer-notes',
    cron_expression: '* * * * *',
    input: { customer: 'Ada', note: 'takes her tea without milk' },
  });
  const { token } = await client.post<{ token: string }>('/api/agent-triggers', {
    agent_id: 'default',
    name: 'pushes',
    skill_category: 'text',
    skill_name: 'word-count',
    mapping: '{"text": body.head_commit.message}',
    signing_secret: pushSecret,
  });

  async function showPush(): Promise<void> {
    const body = JSON.stringify(push);
    const signature = createHmac('sha256', pushSecret).update(body).digest('hex');
    const response = await fetch(`${client.url}/api/webhooks/agent/${token}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-github-delivery': 'a-push-of-the-demo',
        'x-hub-signature-256': `sha256=${signature}`,
      },
      body,
    });
    const { job_id: jobId } = (await response.json()) as { job_id: string };
    await client.showStarted(
      'A signed push, mapped to the input of a skill',
      'POST /api/webhooks/agent/trg_…, which started text/v1.0/word-count',
      jobId,
    );
  }

  async function showSchedule(): Promise<void> {
    const runs = `/api/scheduled-jobs/${schedule.id}/runs`;
    say(`\nThe schedule fires at ${schedule.next_run_at}: wait for it …`);
    const jobId = await client.until('the schedule fires', fireWithinMs, async () => {
      const { data } = await client.get<{ data: { job_id: string | null }[] }>(runs);
      return data[0]?.job_id ?? undefined;
    });
    await client.showStarted(
      'A schedule has fired, and the skill has remembered',
      'POST /api/notes/v1.0/customer-notes, every minute',
      jobId,
    );
    const memories = await client.get<{ data: unknown[] }>(
      '/api/agents/default/memories?q=ada%20tea',
    );
    say('   GET /api/agents/default/memories?q=ada%20tea');
    sayValue(memories.data[0]);
  }

  async function showDeliveries(): Promise<void> {
    const delivery = await client.until('the webhook arrives', deliverWithinMs, async () =>
      receiver.deliveries.find(({ event }) => event === 'scheduled_job.completed'),
    );
    if (receiver.deliveries.some(({ isValid }) => !isValid)) {
      throw new Error('A signature did not verify');
    }
    say(`\nWebhooks: ${receiver.deliveries.length} deliveries arrived, every signature verified.`);
    say(`   ${delivery.event}, x-service-signature: ${delivery.signature}`);
    sayValue(delivery.data);
  }

  return {
    async show(): Promise<void> {
      await showPush();
      await showSchedule();
      await showDeliveries();
    },
  };
}
