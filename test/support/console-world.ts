/**
 * A platform on which something goes on, for the console to show: agents that think, runs in every
 * state, schedules, triggers, webhooks of which one is in trouble, and an hour behind it all.
 */
import { allSkills, runCounters } from '../../src/platform/statistics/statistics.store.ts';
import { type ConsoleWorld, startConsole } from './console.ts';
import type { Answer } from './platform.ts';
import { callingTools, startScriptedProvider } from './scripted-provider.ts';
import { environmentOf, toolNamed } from './thinkers.ts';
import { receiverAuthority, startTlsReceiver } from './tls-receiver.ts';
import { waitFor } from './wait-for.ts';
import { addWaitingJob } from './waiting-job.ts';

/** Addresses of the console, of things that are there. */
export interface BusyConsole extends ConsoleWorld {
  readonly places: Readonly<Record<string, string>>;
}

const minuteMs = 60_000;

export async function startBusyConsole(): Promise<BusyConsole> {
  const provider = await startScriptedProvider();
  const receiver = await startTlsReceiver();
  const world = await startConsole({
    environment: {
      ...environmentOf(provider),
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_RETRY_DELAYS: '0.01,0.01',
      EXECUTORS: '2',
    },
    parts: { webhookEgress: { ca: receiverAuthority } },
    // What it shows is written into its database.
    stores: 'embedded',
  });
  const { platform, key } = world;
  const asked = async (method: string, path: string, body?: unknown, headers = {}) => {
    const answer = await platform.request(method, path, {
      key,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.body;
  };
  const post = (path: string, body?: unknown, headers = {}) => asked('POST', path, body, headers);
  const ended = async (started: Promise<{ job_id: string }>): Promise<Answer> =>
    platform.jobIn(key, (await started).job_id, 'completed', 'failed', 'cancelled');

  // Agents, and what they know.
  await post('/api/agents', {
    id: 'support',
    name: 'Support desk',
    description: 'Answers questions of customers and writes down what it learns of them.',
    instructions:
      'You help customers of a small shop. Be brief and kind. Look things up before you answer.',
    skills: ['text/*', 'web/v1.0/fetch-page'],
    metadata: { team: 'support', language: 'en' },
  });
  await post('/api/agents', {
    id: 'analyst',
    name: 'Analyst',
    description: 'Reads reports and pulls the numbers out of them.',
    skills: ['data/*', 'documents/*'],
  });
  await post('/api/agents', { id: 'night-shift', name: 'Night shift', status: 'paused' });
  await asked('PUT', '/api/agents/support/budget', { tokens_per_day: 50_000 });
  for (const [content, tag] of [
    ['Ms. Okafor prefers answers by e-mail, in the morning.', 'preference'],
    ['Orders above 200 € ship free of charge within the EU.', 'fact'],
    ['The shop is closed from 24 December to 2 January.', 'fact'],
    ['Customer 4711 had two broken deliveries in October; handle with care.', 'customer-context'],
  ]) {
    await post('/api/agents/support/memories', { content, tag, metadata: { source: 'handbook' } });
  }

  // Webhooks: one whose receiver answers, one without a receiver.
  const webhook = await post('/api/agent-webhooks', {
    agent_id: 'support',
    url: `${receiver.origin}/hooks/skillwright`,
    events: ['skill.completed', 'skill.failed', 'agent.error'],
  });
  receiver.answers(({ path }) => ({ status: path.endsWith('/broken') ? 503 : 204, body: '' }));
  const broken = await post('/api/agent-webhooks', {
    agent_id: 'default',
    url: `${receiver.origin}/broken`,
    events: ['skill.completed', 'skill.failed'],
  });

  // Runs that complete, fail, are cancelled, and one of an agent that thinks and calls a tool.
  const named = (id: string) => ({ 'x-agent-id': id, 'x-user-id': 'ms-okafor' });
  const texts = ['The order has not arrived.', 'Where is my invoice?', 'Thank you, all is well.'];
  for (const text of texts)
    await ended(post('/api/text/v1.0/word-count', { text }, named('support')));
  await ended(
    post('/api/data/v1.0/parse-csv', { text: 'month,sales\nMay,120\nJune,180' }, named('analyst')),
  );
  const failed = await ended(
    post('/api/web/v1.0/http-request', { url: 'http://127.0.0.1:9/' }, named('analyst')),
  );
  await ended(post('/api/util/v1.0/echo', { text: 'ping' }));
  const cancelled = await post('/api/util/v1.0/wait', { ms: 60_000 });
  await platform.request('POST', `/api/jobs/${cancelled.job_id}/cancel`, { key });
  provider.script(
    callingTools(
      [{ name: toolNamed('text/v1.0/word-count'), input: { text: 'Where is my parcel?' } }],
      'Your parcel left our house on Monday, so it should be with you by Thursday. I have made a note to look at it again then.',
    ),
  );
  const thought = await ended(
    post(
      '/api/agent/v1.0/run-task',
      { task: 'A customer asks: where is my parcel?' },
      named('support'),
    ),
  );
  const active = await post('/api/util/v1.0/wait', { ms: 300_000 }, named('support'));
  await platform.jobIn(key, active.job_id, 'active');

  // What starts by itself.
  const schedule = await post('/api/scheduled-jobs', {
    agent_id: 'analyst',
    skill_category: 'text',
    skill_name: 'word-count',
    cron_expression: '0 7 * * MON-FRI',
    input: { text: 'Good morning' },
  });
  await post('/api/scheduled-jobs', {
    agent_id: 'support',
    skill_category: 'util',
    skill_name: 'echo',
    cron_expression: '*/15 * * * *',
    input: { text: 'still there' },
  });
  for (let i = 0; i < 3; i++) await ended(post(`/api/scheduled-jobs/${schedule.id}/run`));
  const trigger = await post('/api/agent-triggers', {
    agent_id: 'support',
    name: 'Contact form',
    skill_category: 'text',
    skill_name: 'word-count',
    mapping: '{ "text": body.message }',
  });
  const called = (body: unknown) =>
    platform.request('POST', new URL(trigger.url, platform.url).pathname, { body });
  await called({ message: 'Do you ship to Norway?' });
  await called({ subject: 'no message' });

  await waitFor(
    async () =>
      (await asked('GET', `/api/agent-webhooks/${broken.id}`)).failing &&
      (await asked('GET', `/api/agent-webhooks/${webhook.id}/deliveries`)).total > 0 &&
      (await asked('GET', `/api/agent-triggers/${trigger.id}/calls`)).total === 2,
    { describe: 'deliveries and calls are there', deadlineMs: 20_000 },
  );
  const waiting = await addWaitingJob(world);
  const second = await addWaitingJob(world, { title: 'Refund 40.00 EUR for order 1017?' });
  await post(`/api/approvals/${second.approvalId}/reject`, { reason: 'The parcel has arrived.' });
  await addWaitingJob(world, { title: 'Write to all 312 customers of October?' });
  await anHour(world);

  const conversation = thought.body.conversation_id;
  return {
    ...world,
    places: {
      overview: '/',
      skills: '/skills',
      skill: '/skills/text/v1.0/word-count',
      'skill-schemas': '/skills/text/v1.0/word-count?tab=schemas',
      connect: '/connect',
      jobs: '/jobs',
      'jobs-filtered': '/jobs?status=failed',
      queue: '/queue',
      'queue-own': '/queue?of=own',
      job: `/jobs/${thought.body.job_id}`,
      'job-failed': `/jobs/${failed.body.job_id}`,
      'job-waiting': `/jobs/${waiting.jobId}`,
      approvals: '/approvals',
      'approvals-all': '/approvals?status=any',
      approval: `/approvals/${second.approvalId}`,
      conversations: '/conversations',
      conversation: `/conversations/${conversation}`,
      agents: '/agents',
      agent: '/agents/support',
      'agent-settings': '/agents/support?tab=settings',
      memories: '/memories?agent_id=support',
      schedules: '/schedules',
      schedule: `/schedules/${schedule.id}`,
      webhooks: '/webhooks',
      webhook: `/webhooks/${broken.id}`,
      triggers: '/triggers',
      trigger: `/triggers/${trigger.id}`,
      'api-keys': '/api-keys',
      system: '/system',
    },
    async stop() {
      await platform.request('POST', `/api/jobs/${active.job_id}/cancel`, { key });
      await world.stop();
      await receiver.close();
      await provider.close();
    },
  };
}

/**
 * What the platform would have counted, had it run for an hour; added to what it has counted itself,
 * which may be of the minute before this one.
 */
async function anHour({ platform }: ConsoleWorld): Promise<void> {
  const skills = [
    ['text', 'word-count', 14, 0, 40],
    ['data', 'parse-csv', 6, 0, 90],
    ['web', 'http-request', 5, 1, 820],
    ['agent', 'run-task', 2, 0, 3_400],
  ] as const;
  const thisMinute = Math.floor(Date.now() / minuteMs) * minuteMs;
  for (const [nth, [category, name, most, failures, ms]] of skills.entries()) {
    const rows = Array.from({ length: 59 }, (_, i) => i + 1).map((ago) => {
      // A day has its waves.
      const wave = 0.55 + 0.45 * Math.sin(ago / 7 + nth);
      const completed = Math.round(most * wave);
      const failed = ago % 6 === nth ? failures * 2 : 0;
      return {
        organization_id: 'default',
        seconds: 60,
        start: thisMinute - ago * minuteMs,
        skill_category: category,
        skill_name: name,
        skill_version: 'v1.0',
        accepted: completed + failed,
        completed,
        failed,
        cancelled: 0,
        duration_ms: (completed + failed) * ms,
        longest_ms: ms * 3,
        prompt_tokens: name === 'run-task' ? completed * 640 : 0,
        completion_tokens: name === 'run-task' ? completed * 120 : 0,
        ...{ cost: 0, unreported_calls: 0, unpriced_calls: 0 },
      };
    });
    // As they are stored: each version, and all together.
    const together = rows.map((row) => ({ ...row, ...allSkills }));
    await platform.database.write(async (tx) => {
      await runCounters.add(tx, rows);
      await runCounters.add(tx, together);
    });
  }
}
