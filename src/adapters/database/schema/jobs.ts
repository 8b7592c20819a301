import type { SchemaPart } from './dialects.ts';

/** Jobs, their steps, and everything that their runs wait for. */
export const jobs: SchemaPart = (t) => [
  `create table jobs (
    id text not null primary key,
    organization_id text not null,
    api_key_id text not null,
    agent_id text not null,
    conversation_id text not null,
    skill_category text not null,
    skill_name text not null,
    skill_version text not null,
    trigger_type text not null,
    user_id text not null,
    status text default 'queued' not null,
    attempt integer default 0 not null,
    max_attempts integer not null,
    epoch integer default 0 not null,
    deaths integer default 0 not null,
    run_at bigint not null,
    due_at bigint,
    started_at bigint,
    finished_at bigint,
    cancel_requested_at bigint,
    retry_of text,
    input text not null,
    output text,
    error text,
    progress text,
    created_at bigint not null,
    resumed_at bigint,
    active_ms bigint default 0 not null,
    parent_job_id text,
    parent_step integer,
    depth integer default 0 not null,
    agent_overrides text,
    for_user integer default 0 not null,
    erased_at bigint,
    agent_version integer,
    claimed_by integer default 0 not null,
    begun integer default 0 not null,
    attempts_before integer default 0 not null,
    idle_claims integer default 0 not null
  ) ${t.roomy}`,
  `create index jobs_due on jobs (status, due_at) where due_at is not null`,
  `create index jobs_newest on jobs (organization_id, id)`,
  `create index jobs_failed on jobs (organization_id, status, id)
    where status in ('failed', 'cancelled')`,
  // Few at any moment: each worker reads them, in case a message was lost.
  `create index jobs_cancelling on jobs (id)
    where status = 'active' and cancel_requested_at is not null`,
  // Found without walking past other waiting jobs: scheduled jobs have a queue of their own.
  `create index jobs_due_scheduled on jobs (due_at)
    where status = 'queued' and trigger_type = 'scheduled'`,
  // Of an expression that no other query names: the planner would take it for claims as well, while it believes the table to
  // be small, and walk past all waiting jobs.
  `create index jobs_waiting on jobs (organization_id, run_at) where status || '' = 'queued'`,
  `create index jobs_children on jobs (parent_job_id, id) where parent_job_id is not null`,
  t.only.sqlite(
    `create index jobs_unloaded on jobs (organization_id, id) where status = 'waiting'`,
  ),
  `create index jobs_unended on jobs (organization_id, id) where due_at is not null`,
  `create index jobs_child_of_step on jobs (parent_job_id, parent_step) where parent_job_id is not null`,
  `create index jobs_of_user on jobs (organization_id, user_id, id) where for_user = 1`,
  `create index jobs_of_agent_version on jobs (organization_id, agent_id, agent_version)
    where agent_version is not null`,
  // In PostgreSQL lists take the newest of each kind, by everything that jobs are counted by. SQLite, with one process and a
  // fraction of the rows, walks past the others.
  t.only.postgres(`create index jobs_listed on jobs
    (organization_id, agent_id, skill_category, skill_name, skill_version, trigger_type, status, id)`),
  `create table job_counts (
    organization_id text not null,
    agent_id text not null,
    skill_category text not null,
    skill_name text not null,
    skill_version text not null,
    trigger_type text not null,
    status text not null,
    writer text not null,
    count bigint not null,
    constraint job_counts_pk primary key (organization_id, agent_id, skill_category, skill_name, skill_version, trigger_type, status, writer)
  ) ${t.clustered}`,
  // Metrics add these up.
  t.only.postgres(`create index job_counts_unended on job_counts (trigger_type, status)
    where status in ('queued', 'active', 'waiting')`),
  `create table job_events (
    job_id text not null,
    epoch integer not null,
    n integer not null,
    type text not null,
    data text not null,
    created_at bigint not null,
    constraint job_events_pk primary key (job_id, epoch, n)
  ) ${t.clustered}`,
  `create table job_steps (
    job_id text not null,
    n integer not null,
    epoch integer not null,
    generation text not null,
    turn integer not null,
    kind text not null,
    name text not null,
    call_id text,
    status text not null,
    error text,
    message_id text,
    memory text,
    prompt_tokens bigint,
    completion_tokens bigint,
    reserved bigint default 0 not null,
    estimated bigint default 0 not null,
    started_at bigint not null,
    finished_at bigint,
    result text,
    parent integer,
    digest text,
    due_at bigint,
    attempt integer,
    seen_to integer,
    told integer,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    expected_prompt bigint,
    cost bigint,
    estimated_cost bigint default 0 not null,
    reserved_cost bigint default 0 not null,
    price text,
    constraint job_steps_pk primary key (job_id, n)
  ) ${t.clustered}`,
  `create index job_steps_generation on job_steps (job_id, generation, n)`,
  `create index job_steps_child_runs on job_steps (job_id, n) where kind = 'run' and status = 'waiting'`,
  `create table idempotency_keys (
    owner text not null,
    idempotency_key text not null,
    fingerprint text not null,
    job_id text not null,
    created_at bigint not null,
    constraint idempotency_keys_pk primary key (owner, idempotency_key)
  ) ${t.clustered}`,
  `create index idempotency_keys_age on idempotency_keys (created_at)`,
  `create index idempotency_keys_of_job on idempotency_keys (job_id)`,
  `create table family_cancellations (
    job_id text not null primary key
  ) ${t.clustered}`,
  `create table approvals (
    id text not null primary key,
    organization_id text not null,
    agent_id text not null,
    conversation_id text not null,
    job_id text not null,
    n integer not null,
    step text not null,
    title text not null,
    details text not null,
    digest text not null,
    status text not null,
    requested_at bigint not null,
    expires_at bigint not null,
    decided_at bigint,
    decided_by text,
    decided_by_kind text,
    decided_by_key text,
    reason text,
    fields text,
    answer text,
    constraint approvals_step unique (job_id, n)
  ) ${t.clustered}`,
  `create index approvals_newest on approvals (organization_id, id)`,
  `create index approvals_status on approvals (organization_id, status, id)`,
  `create index approvals_agent_id on approvals (organization_id, agent_id, id)`,
  `create index approvals_agent_id_status on approvals (organization_id, agent_id, status, id)`,
  `create table event_waits (
    organization_id text not null,
    event text not null,
    key text not null,
    job_id text not null,
    n integer not null,
    constraint event_waits_pk primary key (organization_id, event, key, job_id, n)
  ) ${t.clustered}`,
  `create index event_waits_job on event_waits (job_id)`,
  `create table event_positions (
    organization_id text not null,
    event text not null,
    key text not null,
    job_id text not null,
    event_id text not null,
    constraint event_positions_pk primary key (organization_id, event, key, job_id)
  ) ${t.clustered}`,
  `create index event_positions_job on event_positions (job_id)`,
  `create table received_events (
    id text not null primary key,
    organization_id text not null,
    event text not null,
    key text not null,
    job_id text,
    taken integer default 0 not null,
    told integer default 0 not null,
    created_at bigint not null,
    data text not null
  ) ${t.clustered}`,
  `create index received_events_key on received_events (organization_id, event, key, id)`,
  `create index received_events_untaken on received_events (organization_id, event, key, id)
    where taken = 0`,
  `create index received_events_taken on received_events (organization_id, event, key, id)
    where taken = 1`,
  `create index received_events_untold on received_events (organization_id, event, key, id)
    where told = 0`,
  `create index received_events_oldest on received_events (organization_id, taken, id)`,
  `create index received_events_job on received_events (job_id) where job_id is not null`,
  `create table event_totals (
    organization_id text not null,
    shard integer not null,
    events integer not null,
    bytes bigint not null,
    constraint event_totals_pk primary key (organization_id, shard)
  ) ${t.clustered}`,
  `create table event_idempotency_keys (
    owner text not null,
    idempotency_key text not null,
    fingerprint text not null,
    event_id text not null,
    delivered integer not null,
    created_at bigint not null,
    constraint event_idempotency_keys_pk primary key (owner, idempotency_key)
  ) ${t.clustered}`,
  `create index event_idempotency_keys_age on event_idempotency_keys (created_at)`,
  `create index event_idempotency_keys_of_event on event_idempotency_keys (event_id)`,
];
