import type { SchemaPart } from './dialects.ts';

/** The outbox, webhooks and their deliveries. */
export const webhooks: SchemaPart = (t) => [
  `create table events (
    seq ${t.key},
    id text not null,
    organization_id text not null,
    agent_id text not null,
    type text not null,
    data text not null,
    created_at bigint not null${t.only.postgres(', txid xid8 not null default pg_current_xact_id()')}
  )`,
  `create index events_of_organization on events (organization_id, ${t.only.postgres('txid, ')}seq)`,
  t.only.postgres(`create index events_in_order on events (txid, seq)`),
  `create table event_cursors (
    name text not null primary key,
    txid text not null,
    seq bigint not null
  ) ${t.clustered}`,
  `create table webhooks (
    id text not null primary key,
    organization_id text not null,
    agent_id text not null,
    url text not null,
    host text not null,
    events text not null,
    secret text not null,
    active integer not null,
    failing integer not null,
    consecutive_failures integer not null,
    active_since text not null,
    removed integer not null,
    last_delivery_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    secret_sealed integer default 0 not null
  ) ${t.clustered}`,
  `create index webhooks_newest on webhooks (organization_id, id)`,
  `create index webhooks_active on webhooks (organization_id, agent_id) where active = 1`,
  `create index webhooks_removed on webhooks (id) where removed = 1`,
  `create index webhooks_unsealed on webhooks (id) where secret_sealed = 0`,
  `create table webhook_listeners (
    organization_id text not null,
    id text not null,
    api_key_id text not null,
    agent_id text not null,
    events text not null,
    expires_at bigint not null,
    constraint webhook_listeners_pk primary key (organization_id, id)
  ) ${t.clustered}`,
  `create table webhook_deliveries (
    id text not null primary key,
    webhook_id text not null,
    event_id text not null,
    event text not null,
    status text not null,
    attempts integer not null,
    lost integer not null,
    epoch integer not null,
    due_at bigint,
    started_at bigint,
    is_test integer not null,
    redelivery_of text,
    created_at bigint not null,
    finished_at bigint,
    body text not null,
    subject text
  ) ${t.clustered}`,
  `create unique index webhook_deliveries_once on webhook_deliveries (webhook_id, event_id)
    where redelivery_of is null`,
  `create index webhook_deliveries_newest on webhook_deliveries (webhook_id, id)`,
  `create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at)
    where status = 'pending'`,
  `create index webhook_deliveries_leased on webhook_deliveries (due_at) where status = 'delivering'`,
  `create index webhook_deliveries_overdue on webhook_deliveries (due_at) where status = 'pending'`,
  `create index webhook_deliveries_of_subject on webhook_deliveries (subject, id)
    where subject is not null`,
  `create table webhook_attempts (
    delivery_id text not null,
    attempt integer not null,
    started_at bigint not null,
    duration_ms bigint not null,
    status integer,
    error text,
    response text,
    constraint webhook_attempts_pk primary key (delivery_id, attempt)
  ) ${t.clustered}`,
  `create table webhook_delivery_counts (
    webhook_id text not null,
    status text not null,
    writer text not null,
    count bigint not null,
    constraint webhook_delivery_counts_pk primary key (webhook_id, status, writer)
  ) ${t.clustered}`,
];
