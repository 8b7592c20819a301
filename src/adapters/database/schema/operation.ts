import type { SchemaPart } from './dialects.ts';

/** The ledger of tokens, statistics, processes, erasures. */
export const operation: SchemaPart = (t) => [
  `create table token_usage (
    organization_id text not null,
    owner_kind text not null,
    owner_id text not null,
    day text not null,
    prompt_tokens bigint default 0 not null,
    completion_tokens bigint default 0 not null,
    estimated_tokens bigint default 0 not null,
    reserved_tokens bigint default 0 not null,
    calls bigint default 0 not null,
    unreported_calls bigint default 0 not null,
    cache_read_tokens bigint default 0 not null,
    cache_write_tokens bigint default 0 not null,
    reasoning_tokens bigint default 0 not null,
    cost bigint default 0 not null,
    estimated_cost bigint default 0 not null,
    reserved_cost bigint default 0 not null,
    unpriced_calls bigint default 0 not null,
    constraint token_usage_pk primary key (organization_id, owner_kind, owner_id, day)
  ) ${t.clustered}`,
  `create index token_usage_by_day on token_usage (day, organization_id, owner_kind, owner_id)`,
  `create table token_budgets (
    organization_id text not null,
    owner_kind text not null,
    owner_id text not null,
    tokens_per_day bigint,
    tokens_per_month bigint,
    updated_at bigint not null,
    cost_per_day bigint,
    cost_per_month bigint,
    constraint token_budgets_pk primary key (organization_id, owner_kind, owner_id)
  ) ${t.clustered}`,
  `create table run_statistics (
    organization_id text not null,
    seconds integer not null,
    start bigint not null,
    skill_category text not null,
    skill_name text not null,
    skill_version text not null,
    accepted bigint not null,
    completed bigint not null,
    failed bigint not null,
    cancelled bigint not null,
    duration_ms bigint not null,
    longest_ms bigint not null,
    prompt_tokens bigint not null,
    completion_tokens bigint not null,
    cost bigint default 0 not null,
    unreported_calls bigint default 0 not null,
    unpriced_calls bigint default 0 not null,
    constraint run_statistics_pk primary key (organization_id, seconds, start, skill_category, skill_name, skill_version)
  ) ${t.clustered}`,
  // Of expressions, so that retention alone reads by them: for the statistics of an organization or a skill the planner would
  // sooner walk past all others of that age than use the primary key.
  `create index run_statistics_age on run_statistics ((seconds + 0), (start + 0))`,
  `create table processes (
    id text not null primary key,
    roles text not null,
    version text not null,
    skills text not null,
    started_at bigint not null,
    seen_at bigint not null,
    last_claim_at bigint not null,
    last_job_at bigint default 0 not null,
    capabilities text default '[]' not null
  ) ${t.clustered}`,
  `create table user_erasures (
    organization_id text not null,
    user_id text not null,
    txid text not null,
    seq bigint not null,
    constraint user_erasures_pk primary key (organization_id, user_id)
  )`,
  `create table write_probes (
    id integer primary key,
    content text not null
  )`,
];
