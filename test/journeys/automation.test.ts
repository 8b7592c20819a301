/**
 * One journey through everything that happens without a client's request: a schedule fires, its skill
 * runs and remembers, the conversation is there, the signed webhooks arrive and verify; and a push,
 * as a code host sends it, starts a run through a trigger.
 */
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bodySignature } from '../../src/kernel/webhook-signature.ts';
import { engines } from '../support/databases.ts';
import { anId, aTimestamp } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { startPlatform } from '../support/platform.ts';
import { newTenant } from '../support/tenant.ts';
import { receiverAuthority, startTlsReceiver } from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';
import { expectSigned } from '../support/webhooks.ts';

describe.each(await engines())('on $name', (engine) => {
  /** A platform on this database, a receiver that it may reach, and time in the test's hand. */
  async function world() {
    const clock = manualClock();
    const receiver = await startTlsReceiver();
    onTestFinished(() => receiver.close());
    const { at } = await engine.place();
    const platform = await startPlatform({
      clock,
      environment: {
        ...(engine.name === 'PostgreSQL' ? { DATABASE_URL: at } : {}),
        SKILLS_DIR: join(import.meta.dirname, '../../examples/skills'),
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      },
      parts: { webhookEgress: { ca: receiverAuthority } },
    });
    onTestFinished(() => platform.stop());
    return { clock, receiver, platform, tenant: await newTenant(platform) };
  }

  test('a schedule fires, the skill runs and remembers, the conversation is there, the signed webhook arrives', async () => {
    const { clock, receiver, tenant } = await world();
    const webhook = await tenant.post('/api/agent-webhooks', {
      agent_id: 'default',
      url: `${receiver.origin}/hook`,
      events: ['scheduled_job.completed'],
    });
    expect(webhook.status).toBe(201);
    const schedule = await tenant.post('/api/scheduled-jobs', {
      agent_id: 'default',
      skill_category: 'notes',
      skill_name: 'customer-notes',
      cron_expression: '*/5 * * * *',
      input: { customer: 'Ada', note: 'prefers tea' },
    });
    expect(schedule.status).toBe(201);
    const slot = schedule.body.next_run_at as string;

    clock.advance(Date.parse(slot) - clock.now());

    const run = await waitFor(
      async () => {
        const { body } = await tenant.get(`/api/scheduled-jobs/${schedule.body.id}/runs`);
        return body.data.find((one: { status: string }) => one.status === 'completed') ?? null;
      },
      { describe: 'the run of the slot has completed' },
    );
    expect(run).toMatchObject({ scheduled_for: slot, outcome: 'fired' });
    const job = (await tenant.get(`/api/jobs/${run.job_id}`)).body;
    expect(job).toMatchObject({
      trigger_type: 'scheduled',
      output: { notes: ['Ada: prefers tea'] },
    });

    const memories = (await tenant.get('/api/agents/default/memories?q=tea')).body;
    expect(memories).toMatchObject({ total: 1, data: [{ content: 'Ada: prefers tea' }] });

    const conversation = (await tenant.get(`/api/conversations/${job.conversation_id}`)).body;
    expect(conversation).toMatchObject({ trigger_type: 'scheduled', status: 'completed' });
    const messages = (await tenant.get(`/api/conversations/${job.conversation_id}/messages`)).body;
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant']);

    const delivery = await receiver.receivedWhere(
      (request) => request.json.event === 'scheduled_job.completed',
    );
    expect(delivery.json).toEqual({
      id: anId,
      event: 'scheduled_job.completed',
      timestamp: aTimestamp,
      agent_id: 'default',
      data: {
        scheduled_job_id: schedule.body.id,
        job_id: job.job_id,
        skill_category: 'notes',
        skill_name: 'customer-notes',
        skill_version: 'v1.0',
        conversation_id: job.conversation_id,
        scheduled_for: slot,
        duration_ms: expect.any(Number),
      },
    });
    expectSigned(delivery, webhook.body.secret);
  });

  test('a push of a code host starts one run through a trigger, also when it is repeated', async () => {
    const { platform, tenant } = await world();
    const signingSecret = 'the-secret-of-the-code-host';
    const trigger = await tenant.post('/api/agent-triggers', {
      agent_id: 'default',
      name: 'pushes',
      skill_category: 'text',
      skill_name: 'word-count',
      mapping: '{"text": $join(body.commits.message, " ")}',
      signing_secret: signingSecret,
    });
    expect(trigger.status).toBe(201);
    const push = JSON.stringify({
      ref: 'refs/heads/main',
      commits: [{ message: 'Mend the kettle' }, { message: 'Pour first' }],
    });
    const send = () =>
      platform.request('POST', `/api/webhooks/agent/${trigger.body.token}`, {
        body: push,
        headers: {
          'x-github-event': 'push',
          'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
          'x-hub-signature-256': `sha256=${bodySignature(signingSecret, push)}`,
        },
      });

    const first = await send();
    const second = await send();

    expect(first.status).toBe(202);
    expect(second.body).toEqual(first.body);
    const { body: job } = await tenant.jobIn(first.body.job_id, 'completed');
    expect(job).toMatchObject({ trigger_type: 'webhook', output: { words: 5 } });
    expect((await tenant.get('/api/jobs?trigger_type=webhook')).body.total).toBe(1);
  });
});
