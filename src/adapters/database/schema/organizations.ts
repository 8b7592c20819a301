import type { SchemaPart } from './dialects.ts';

/** Organizations, their keys and sessions, and their credentials for providers of models. */
export const organizations: SchemaPart = (t) => [
  `create table organizations (
    id text not null primary key,
    created_at bigint not null
  ) ${t.clustered}`,
  `create table api_keys (
    id text not null primary key,
    organization_id text not null,
    client_name text not null,
    key_hash text not null unique,
    scopes text not null,
    rate_limit integer not null,
    enabled integer not null,
    created_at bigint not null,
    expires_at bigint,
    console integer default 0 not null
  ) ${t.clustered}`,
  `create unique index api_keys_console on api_keys (organization_id) where console = 1 and enabled = 1`,
  `create table console_secrets (
    id integer primary key,
    secret text not null
  )`,
  `create table ended_sessions (
    id text primary key,
    expires_at bigint not null
  )`,
  `create index ended_sessions_expires on ended_sessions (expires_at)`,
  `create table credentials (
    organization_id text not null,
    provider text not null,
    api_key text,
    base_url text,
    created_at bigint not null,
    updated_at bigint not null,
    constraint credentials_pk primary key (organization_id, provider)
  ) ${t.clustered}`,
  `create table skill_key_runs (
    organization_id text not null,
    skill_category text not null,
    skill_name text not null,
    skill_version text not null,
    api_key_id text not null,
    day text not null,
    runs bigint not null,
    last_used_at bigint not null,
    constraint skill_key_runs_pk primary key (organization_id, skill_category, skill_name, skill_version, day, api_key_id)
  ) ${t.clustered}`,
  `create index skill_key_runs_age on skill_key_runs ((day || ''))`,
];
