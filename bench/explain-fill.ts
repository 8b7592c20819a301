/**
 * Fills PostgreSQL with the history of a busy platform, in SQL, far faster than living it. What is
 * spread unevenly is so on purpose: an organization with few rows among many, values that are rare or
 * were only used long ago, a webhook, a conversation and a user with very much.
 */
import pg from 'pg';
import type { Database } from '../src/adapters/database/database.ts';
import { openPostgres } from '../src/adapters/database/postgres.ts';
import { composeAgents } from '../src/apps/composition/agents.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { createLogger } from '../src/kernel/log.ts';
import { contextOf } from '../test/support/context.ts';
import { rememberMany } from './memories.ts';

/** How much there is; the rest is in proportion. */
export interface Size {
  readonly jobs: number;
  readonly memories: number;
}

export const large = 'large';
export const agentOfMemories = 'agent-0';

const day = 86_400_000;
const daysOfHistory = 20;

type Fill = (db: pg.Client, size: Size) => Promise<unknown>;

/** Makes the tables of an empty database, fills them and lets the planner look at them. */
export async function fill(url: string, size: Size): Promise<void> {
  const database = await openPostgres(url, createLogger('warn'));
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  for (const step of [functions, owners, jobs, waits, conversations, messages, counts, events]) {
    await timed(step.name, () => step(db, size));
  }
  for (const step of [webhooks, schedules, others]) await timed(step.name, () => step(db, size));
  await timed('memories', () => memories(database, size.memories));
  await timed('analyze', () => db.query('vacuum analyze'));
  await db.end();
  await database.close();
}

async function timed(name: string, run: () => Promise<unknown>): Promise<void> {
  const begun = performance.now();
  await run();
  console.error(`${name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}

/** An id of a moment, and when the i-th of a million things was. */
async function functions(db: pg.Client, { jobs: count }: Size): Promise<void> {
  await db.query(`create function fill_id(ms bigint, salt text) returns text immutable language sql as $$
    select substr(t, 1, 8) || '-' || substr(t, 9, 4) || '-7' || substr(m, 1, 3) || '-a'
      || substr(m, 4, 3) || '-' || substr(m, 7, 12)
    from (select lpad(to_hex(ms), 12, '0') as t, md5(salt) as m) as parts $$`);
  // One of `parts` numbers for the i-th thing, independent of those with another `salt`.
  await db.query(`create function fill_part(i bigint, salt integer, parts integer) returns integer
    immutable language sql as $$ select (hashint8(i * 16 + salt) & 2147483647) % parts $$`);
  const from = Date.now() - daysOfHistory * day;
  await db.query(`create function fill_at(i bigint) returns bigint immutable language sql as $$
    select ${from}::bigint + (i * ${daysOfHistory * day}::bigint) / ${count} $$`);
}

const owners: Fill = async (db) => {
  await db.query(
    `insert into organizations select 'org-' || i, 0 from generate_series(1, 1000) as i`,
  );
  await db.query(`insert into agents select '${large}', 'agent-' || i, 'Agent ' || i, '', 'active', '', null,
      '[]', '{}', fill_at(i), fill_at(i) from generate_series(0, 4999) as i`);
  await db.query(`insert into api_keys select fill_id(i, 'key' || i), 'org-' || i, 'client ' || i, md5('k' || i),
      '["*"]', 100, 1, fill_at(i), null from generate_series(1, 1000) as i`);
};

/**
 * Seven in ten are one organization's; the newest wait or run, some have failed. What is called old or
 * rare is among the oldest only.
 */
const jobs: Fill = (db, { jobs: count }) =>
  db.query(`insert into jobs (id, organization_id, api_key_id, agent_id, conversation_id, skill_category,
      skill_name, skill_version, trigger_type, user_id, status, attempt, max_attempts, epoch, run_at,
      due_at, started_at, finished_at, input, output, error, created_at)
    select fill_id(at, 'job' || i), org, 'key', agent, fill_id(at, 'conversation' || i),
      case when skill = 'rare' then 'rare' else (array['text', 'data', 'web', 'util'])[1 + skill::integer % 4] end,
      'skill-' || skill, case when i <= ${count / 10} then 'v1.0' else 'v2.0' end, trigger, person, status,
      1, 3, 1, at, case when status in ('queued', 'active') then ${Date.now() + day} end, at,
      case when status in ('queued', 'active') then null else at + 50 end,
      '{"text":"The quick brown fox jumps over the lazy dog."}',
      case when status = 'completed' then '{"text":"The quick brown fox jumps over the lazy dog."}' end,
      case when status in ('failed', 'cancelled') then '{"code":"skill_timeout","message":"late"}' end, at
    from (select i, fill_at(i) as at, org,
        case when i <= 5000 and fill_part(i, 1, 1000) = 3 then 'agent-forgotten'
          when i <= ${count / 10} and fill_part(i, 1, 2) = 0 then 'agent-old'
          when fill_part(i, 2, 13) < 8 then 'agent-0'
          when fill_part(i, 2, 13) < 12 then 'agent-' || fill_part(i, 3, 10)
          else 'agent-' || fill_part(i, 3, 2000) end as agent,
        case when i <= 5000 and fill_part(i, 4, 500) = 1 then 'rare' else fill_part(i, 4, 12)::text end as skill,
        case when org = 'medium' and i > 3000 then 'api'
          when fill_part(i, 5, 20) < 16 then 'api' when fill_part(i, 5, 20) < 19 then 'scheduled'
          else 'webhook' end as trigger,
        case when fill_part(i, 6, 10) < 3 then 'everyone' when i = 4711 then 'somebody'
          else 'user-' || fill_part(i, 7, 5000) end as person,
        case when i > ${count} - 2000 then case when i % 20 = 0 then 'active' else 'queued' end
          when org = 'medium' and i > 10000 then 'completed'
          when fill_part(i, 8, 100) < 3 then 'failed' when fill_part(i, 8, 1000) = 777 then 'cancelled'
          else 'completed' end as status
      from (select i, case when fill_part(i, 9, 40000) = 7 then 'small' when fill_part(i, 9, 100) < 70 then '${large}'
          when fill_part(i, 9, 100) < 95 then 'medium' else 'org-' || 1 + fill_part(i, 10, 20) end as org
        from generate_series(1, ${count}::bigint) as i) as named) as made`);

/** Runs that wait, a tenth as many as jobs, with what they wait for, and events and decisions of earlier ones. */
const waits: Fill = async (db, { jobs: count }) => {
  const number = count / 10;
  const org = `case when i % 10 < 7 then '${large}' when i % 10 < 9 then 'medium' else 'org-' || 1 + i % 20 end`;
  const id = `fill_id(fill_at(i * 10), 'waiting' || i)`;
  const all = `generate_series(1, ${number}) as i`;
  await db.query(`insert into jobs (id, organization_id, api_key_id, agent_id, conversation_id, skill_category,
      skill_name, skill_version, trigger_type, user_id, status, attempt, max_attempts, epoch, run_at,
      due_at, started_at, input, created_at, parent_job_id, parent_step, depth)
    select ${id}, ${org}, 'key', 'agent-' || i % 10, fill_id(fill_at(i * 10), 'wait' || i), 'text', 'skill-1', 'v2.0',
      'api', 'everyone', 'waiting', 1, 3, 1, fill_at(i * 10), ${Date.now() + day} + i, fill_at(i * 10), '{}',
      fill_at(i * 10), case when i % 5 = 0 then fill_id(fill_at(i / 1000 * 1000 * 10 + 10), 'waiting' || i / 1000 * 1000 + 1) end,
      case when i % 5 = 0 then i % 1000 end, case when i % 5 = 0 then 1 else 0 end
    from ${all}`);
  await db.query(`insert into job_steps (job_id, n, epoch, generation, turn, kind, name, status, started_at, due_at)
    select ${id}, 1, 1, 'w', 1, 'event', 'paid', 'waiting', fill_at(i * 10), ${Date.now() + day} + i from ${all}`);
  await db.query(`insert into event_waits (organization_id, event, key, job_id, n)
    select ${org}, 'order.paid', case when i % 10 = 0 then 'all' else 'order-' || i end, ${id}, 1 from ${all}`);
  await db.query(`insert into event_positions (organization_id, event, key, job_id, event_id)
    select ${org}, 'order.placed', 'order-' || i, ${id}, ${id} from ${all}`);
  await db.query(`insert into received_events (id, organization_id, event, key, job_id, taken, told, created_at, data)
    select fill_id(fill_at(i * 10), 'event' || i), ${org}, 'order.placed', 'order-' || i % 9000,
      case when i % 100 = 0 then ${id} end, i % 2, 1, fill_at(i * 10), '{"amount":40}' from ${all}`);
  await db.query(`insert into event_totals
    select organization_id, 0, count(*), sum(octet_length(data)) from received_events group by organization_id`);
  await db.query(`insert into approvals (id, organization_id, agent_id, conversation_id, job_id, n, step, title,
      details, digest, status, requested_at, expires_at)
    select fill_id(fill_at(i * 10), 'approval' || i), ${org}, 'agent-' || i % 10, fill_id(fill_at(i * 10), 'wait' || i),
      ${id}, 2, 'ship', 'Ship?', '{}', 'd', case when i % 10 = 3 then 'pending' else 'approved' end, fill_at(i * 10),
      ${Date.now() + day} from ${all}`);
};

const conversations: Fill = (db) =>
  db.query(`insert into conversations
    select conversation_id, organization_id, agent_id, user_id,
      case status when 'queued' then 'active' when 'cancelled' then 'failed' else status end,
      trigger_type, created_at, coalesce(finished_at, created_at) from jobs`);

/** One for each job, and a long conversation. */
const messages: Fill = async (db) => {
  await db.query(`insert into messages (conversation_id, id, job_id, role, content, created_at)
    select conversation_id, fill_id(created_at, 'message' || id), id, 'user', input, created_at
    from jobs`);
  await db.query(`insert into messages (conversation_id, id, job_id, role, content, created_at)
    select conversation_id, fill_id(created_at + i, 'more' || i), id,
      case when i % 100 = 0 then 'tool' when i % 2 = 0 then 'assistant' else 'user' end,
      repeat('word ', 40), created_at + i
    from (select * from jobs where organization_id = '${large}' order by id limit 1) as job,
      generate_series(1, 10000) as i`);
};

const counts: Fill = async (db) => {
  await db.query(`insert into job_counts
    select organization_id, agent_id, skill_category, skill_name, skill_version, trigger_type, status,
      'explain', count(*) from jobs group by 1, 2, 3, 4, 5, 6, 7`);
  await db.query(`insert into conversation_counts
    select organization_id, agent_id, trigger_type, status, 'explain', count(*)
    from conversations group by 1, 2, 3, 4`);
};

const events: Fill = (db, { jobs: count }) =>
  db.query(`insert into events (id, organization_id, agent_id, type, data, created_at)
    select fill_id(fill_at(i), 'event' || i), '${large}', 'agent-0', 'skill.completed',
      '{"job_id":"00000000-0000-7000-8000-000000000000","result_summary":"done"}', fill_at(i)
    from generate_series(${count} * 7 / 10, ${count}) as i`);

/** Half as many deliveries as jobs, most of them of one webhook. */
const webhooks: Fill = async (db, { jobs: count }) => {
  await db.query(`insert into webhooks
    select fill_id(fill_at(i), 'webhook' || i), case when i < 200 then '${large}' else 'org-' || i end,
      'agent-' || i % 20, 'https://example.com/' || i, 'example.com:443', '["skill.completed"]', 'secret',
      case when i % 10 = 9 then 0 else 1 end, 0, 0, '1:1:', 0, fill_at(i), fill_at(i), fill_at(i)
    from generate_series(0, 999) as i`);
  await db.query(`insert into webhook_deliveries
    select fill_id(fill_at(2 * i), 'delivery' || i), fill_id(fill_at(hook), 'webhook' || hook),
      fill_id(fill_at(2 * i), 'event' || 2 * i), 'skill.completed', status, 1, 0, 1,
      case when status in ('pending', 'delivering') then ${Date.now() + day} end, fill_at(2 * i), 0, null,
      fill_at(2 * i), case when status in ('pending', 'delivering') then null else fill_at(2 * i) + 30 end,
      '{"event":"skill.completed","data":{"job_id":"00000000-0000-7000-8000-000000000000"}}',
      fill_id(fill_at(2 * i), 'job' || 2 * i)
    from (select i, case when i % 10 < 8 then 0 else i % 900 end as hook,
        case when i > ${count / 2} - 5000 then case when i % 100 = 0 then 'delivering' else 'pending' end
          when i % 50 = 0 then 'failed' else 'delivered' end as status
      from generate_series(1, ${count / 2}::bigint) as i) as made`);
  await db.query(`insert into webhook_attempts
    select id, 1, created_at, 25, case when status = 'failed' then 500 else 200 end, null, 'ok'
    from webhook_deliveries`);
  await db.query(`insert into webhook_delivery_counts
    select webhook_id, status, 'explain', count(*) from webhook_deliveries group by 1, 2`);
};

/** Ten thousand schedules, of which one organization has five hundred and one has a long history. */
const schedules: Fill = async (db, { jobs: count }) => {
  await db.query(`insert into scheduled_jobs
    select fill_id(fill_at(i), 'schedule' || i), case when i <= 500 then '${large}' else 'org-' || i % 1000 end,
      'key', 'agent-' || i % 20, 'text', 'skill-' || i, 'v1.0', '0 0 * * *', '0 0 * * *', '{}',
      case when i % 10 = 0 then 0 else 1 end, ${Date.now() + day} + i, fill_at(i), fill_at(i)
    from generate_series(1, 10000) as i`);
  await db.query(`insert into scheduled_job_last_runs
    select id, created_at, 'completed', null from scheduled_jobs`);
  await db.query(`insert into scheduled_runs
    select fill_id(fill_at(i), 'run' || i), '${large}', fill_id(fill_at(s), 'schedule' || s), i * 60000,
      fill_at(i), 'fired', 1, null, fill_id(fill_at(i), 'job' || i), 0, 1, fill_at(i)
    from (select i, case when i % 3 = 0 then 1 else 1 + i % 10000 end as s
      from generate_series(1, ${count}::bigint, 4) as i) as made`);
};

const others: Fill = async (db, { jobs: count }) => {
  await db.query(`insert into agent_triggers
    select fill_id(fill_at(i), 'trigger' || i), case when i <= 1000 then '${large}' else 'org-' || i end, 'key',
      'agent-' || i % 20, 'Trigger ' || i, 'text', 'skill-1', 'v1.0', '{}', null, 60, null, 1, md5('t' || i),
      fill_at(i), fill_at(i)
    from generate_series(1, 5000) as i`);
  // The last 200 of each that was called; a few are so old that they are to be deleted.
  await db.query(`insert into trigger_calls
    select fill_id(fill_at(i), 'trigger' || i), fill_id(at, 'call' || i || '/' || n), at, 5, 202, null, null,
      fill_id(fill_at(i), 'job' || i), 0, 100
    from (select i, n, ${Date.now()} - n * case when i = 7 then ${day / 20} else 60000 end as at
      from generate_series(1, 500) as i, generate_series(1, 200) as n) as made`);
  await db.query(`insert into idempotency_keys
    select 'key', 'key ' || i, md5('f' || i), fill_id(fill_at(i), 'job' || i), fill_at(i)
    from generate_series(1, ${count}::bigint, 5) as i`);
  await db.query(`insert into job_events
    select fill_id(fill_at(i), 'job' || i), 1, n, 'log', '{"level":"info","message":"so far"}', fill_at(i)
    from generate_series(1, ${count}::bigint, 10) as i, generate_series(1, 3) as n`);
  await db.query(`insert into job_steps (job_id, n, epoch, generation, turn, kind, name, status, started_at, finished_at)
    select fill_id(fill_at(i), 'job' || i), n, 1, 'g', n, 'model', 'openai/gpt', 'completed', fill_at(i), fill_at(i)
    from generate_series(100, ${count}::bigint, 20) as i,
      generate_series(1, case when i = 100 then 2000 else 2 end) as n`);
  await db.query(`insert into token_usage (organization_id, owner_kind, owner_id, day, prompt_tokens, calls)
    select case when o < 250 then '${large}' else 'org-' || o end, 'agent', 'agent-' || o,
      to_char(now() - d * interval '1 day', 'YYYY-MM-DD'), 100, 1
    from generate_series(0, 299) as o, generate_series(0, 364) as d`);
  // As many skills as an answer lists, each busy in every stretch, and a skill with many keys.
  const now = Date.now();
  await db.query(`insert into run_statistics
    select org, seconds, start, case when skill = 0 then '' else 'text' end,
      case when skill = 0 then '' else 'skill-' || skill end, case when skill = 0 then '' else 'v1.0' end, 3, 2, 1, 0, 300, 200, 100, 20
    from (values ('${large}'), ('medium')) as orgs(org), generate_series(0, 200) as skill,
      (select 60 as seconds, ${now - (now % 60_000)}::bigint - i * 60000 as start
        from generate_series(0, 179) as i
      union all select 900, ${now - (now % 900_000)}::bigint - i * 900000
        from generate_series(0, 104) as i) as stretches`);
  await db.query(`insert into skill_key_runs
    select 'org-' || o, 'text', 'skill-1', 'v1.0', fill_id(o, 'key' || o), to_char(now() - d * interval '1 day', 'YYYY-MM-DD'), 5, ${now}
    from generate_series(1, 1000) as o, generate_series(0, 34) as d`);
  await db.query(`insert into skill_key_runs
    select '${large}', 'text', 'skill-' || s, 'v1.0', fill_id(o, 'key' || o), to_char(now() - d * interval '1 day', 'YYYY-MM-DD'), 5, ${now}
    from generate_series(1, 500) as o, generate_series(0, 34) as d, generate_series(1, 3) as s`);
  await db.query(`insert into skills (id, category, skill_name, version, display_name, description, parameters_schema,
      output_schema, required_scopes, timeout_ms, max_attempts, defined, deprecated, created_at, updated_at)
    values ('explained', 'text', 'skill-1', 'v1.0', '', '', '{}', '{}', '[]', 1, 1, 1, 0, 0, 0)`);
};

async function memories(database: Database, count: number): Promise<void> {
  const { memories: verbs } = composeAgents(contextOf({ database, clock: systemClock }));
  await rememberMany(database, verbs, { organizationId: large, agentId: agentOfMemories }, count);
}
