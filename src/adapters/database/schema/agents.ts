import type { SchemaPart } from './dialects.ts';

/** Agents with their versions; conversations and messages. */
export const agents: SchemaPart = (t) => [
  `create table agents (
    organization_id text not null,
    id text not null,
    name text not null,
    description text not null,
    status text not null,
    instructions text not null,
    model text,
    skills text not null,
    metadata text not null,
    created_at bigint not null,
    updated_at bigint not null,
    approvals text default '[]' not null,
    agents text default '[]' not null,
    model_settings text default '{}' not null,
    fallback_models text default '[]' not null,
    memory text default 'read_write' not null,
    recall text,
    version integer default 1 not null,
    constraint agents_pk primary key (organization_id, id)
  ) ${t.clustered}`,
  `create table agent_versions (
    organization_id text not null,
    agent_id text not null,
    n integer not null,
    fields text not null,
    changed text not null,
    restored_from integer,
    created_at bigint not null,
    constraint agent_versions_key primary key (organization_id, agent_id, n)
  ) ${t.clustered}`,
  `create table removed_agents (
    organization_id text not null,
    agent_id text not null,
    removed_at bigint not null,
    constraint removed_agents_pkey primary key (organization_id, agent_id)
  )`,
  `create table conversations (
    id text not null primary key,
    organization_id text not null,
    agent_id text not null,
    user_id text not null,
    status text not null,
    trigger_type text not null,
    created_at bigint not null,
    updated_at bigint not null,
    ${t.only.postgres("failed boolean generated always as (status = 'failed') stored,")}
    failed_summaries integer default 0 not null,
    next_summary_at bigint,
    failed_summaries_version integer
  ) ${t.roomy}`,
  `create index conversations_newest on conversations (organization_id, id)`,
  `create index conversations_of_user on conversations (organization_id, user_id, id)`,
  // Without the status, so that the end of a conversation touches no index; failed ones have an index by a column that the
  // others never change.
  t.only.postgres(
    `create index conversations_listed on conversations (organization_id, agent_id, trigger_type, id)`,
  ),
  t.only.postgres(`create index conversations_failed on conversations (organization_id, agent_id, trigger_type, id)
    where failed`),
  `create table conversation_counts (
    organization_id text not null,
    agent_id text not null,
    trigger_type text not null,
    status text not null,
    writer text not null,
    count bigint not null,
    constraint conversation_counts_pk primary key (organization_id, agent_id, trigger_type, status, writer)
  ) ${t.clustered}`,
  `create table messages (
    conversation_id text not null,
    id text not null,
    job_id text not null,
    role text not null,
    content text not null,
    prompt_tokens bigint default 0 not null,
    completion_tokens bigint default 0 not null,
    created_at bigint not null,
    unreported integer default 0 not null,
    dialogue integer default 0 not null,
    data text,
    model text,
    cache_read_tokens bigint default 0 not null,
    cache_write_tokens bigint default 0 not null,
    reasoning_tokens bigint default 0 not null,
    cost bigint,
    constraint messages_pk primary key (conversation_id, id)
  ) ${t.clustered}`,
  `create index messages_with_tokens on messages
    (conversation_id, job_id, id, prompt_tokens, completion_tokens, unreported, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, model)
    where prompt_tokens + completion_tokens + unreported > 0`,
];
