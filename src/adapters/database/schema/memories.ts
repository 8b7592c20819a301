import type { SchemaPart } from './dialects.ts';
import { memoryIndex } from './memory-index.ts';

/** Memories, the index of their words, and their vectors. */
export const memories: SchemaPart = (t) => [
  `create table memory_owners (
    id ${t.key},
    organization_id text not null,
    agent_id text not null,
    count bigint default 0 not null,
    removed integer default 0 not null,
    kind integer default 0 not null,
    user_id text default '' not null,
    next_expiry bigint
  )`,
  `create index memory_owners_removed on memory_owners (id) where removed = 1`,
  `create unique index memory_owners_agent on memory_owners (organization_id, agent_id, kind, user_id)
    where removed = 0`,
  `create index memory_owners_expiring on memory_owners (next_expiry) where next_expiry is not null`,
  `create table memories (
    seq ${t.key},
    owner bigint not null,
    id text not null,
    tag text not null,
    word_count integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    metadata text not null,
    words text not null,
    content text not null,
    terms text,
    user_id text,
    together bigint,
    job_id text,
    conversation_id text,
    step integer,
    expires_at bigint,
    written_for text,
    edited integer default 0 not null,
    embedding bigint default 0 not null
  )`,
  `create unique index memories_newest on memories (owner, id)`,
  `create index memories_of_tag on memories (owner, tag, id)`,
  `create index memories_without_terms on memories (seq) where terms is null`,
  `create index memories_together on memories (together, id) where together is not null`,
  `create index memories_together_tag on memories (together, tag, id) where together is not null`,
  `create index memories_of_job on memories (job_id) where job_id is not null`,
  `create index memories_expiring on memories (owner, expires_at) where expires_at is not null`,
  `create index memories_together_expiring on memories (together, expires_at)
    where expires_at is not null`,
  `create index memories_written_for on memories (written_for) where written_for is not null`,
  `create index memories_embedding on memories (embedding, owner, seq)`,
  `create table memory_tags (
    owner bigint not null,
    tag text not null,
    count bigint not null,
    constraint memory_tags_pk primary key (owner, tag)
  ) ${t.clustered}`,
  `create table embedding_models (
    id ${t.key},
    model text not null,
    dimensions integer,
    activated_at bigint not null,
    holder text,
    leased_until bigint default 0 not null
  )`,
  `create table memory_vectors (
    seq bigint not null primary key,
    model bigint not null,
    vector ${t.bytes} not null
  )`,
  `create table memory_codes (
    n ${t.neverReusedKey},
    seq bigint not null,
    owner bigint not null,
    together bigint,
    model bigint not null,
    code ${t.bits} not null
  )`,
  `create unique index memory_codes_seq on memory_codes (seq)`,
  `create index memory_codes_owner on memory_codes (owner, model, n)`,
  `create index memory_codes_together on memory_codes (together, model, n) where together is not null`,
  `create table embedding_calls (
    id text not null primary key,
    organization_id text not null,
    owner_kind text not null,
    owner_id text not null,
    model text not null,
    reserved_at bigint not null,
    reserved bigint not null,
    reserved_cost bigint not null,
    expected bigint not null,
    price text,
    lost_at bigint not null
  )`,
  `create index embedding_calls_lost_at on embedding_calls (lost_at)`,
  ...memoryIndex(t),
];
