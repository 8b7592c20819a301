/**
 * Every table as the code sees it. Moments are milliseconds since the epoch, flags are 0 or 1,
 * and JSON is stored as text, so that both databases hold the same values.
 */
import type { Generated } from 'kysely';

export type JobStatus = 'queued' | 'active' | 'completed' | 'failed' | 'cancelled';
export type TriggerType = 'api' | 'scheduled' | 'webhook';
export type ConversationStatus = 'active' | 'completed' | 'failed';
export type MessageRole = 'user' | 'assistant' | 'system' | 'tool';

export interface OrganizationsTable {
  id: string;
  created_at: number;
}

export interface ApiKeysTable {
  id: string;
  organization_id: string;
  client_name: string;
  /** SHA-256 of the key, hex. The key itself is never stored. */
  key_hash: string;
  /** JSON array of strings. */
  scopes: string;
  rate_limit: number;
  enabled: number;
  created_at: number;
  expires_at: number | null;
}

export interface SkillsTable {
  id: string;
  category: string;
  skill_name: string;
  version: string;
  display_name: string;
  description: string;
  /** JSON Schema. */
  parameters_schema: string;
  /** JSON Schema. */
  output_schema: string;
  /** JSON array of strings. */
  required_scopes: string;
  timeout_ms: number;
  max_attempts: number;
  /** 1 while a loaded source defines it. */
  defined: number;
  /** 1 after an administrator deprecated this version. */
  deprecated: number;
  created_at: number;
  updated_at: number;
}

export interface AgentsTable {
  organization_id: string;
  id: string;
  name: string;
  description: string;
  status: 'active' | 'paused';
  instructions: string;
  model: string | null;
  /** JSON array of patterns. */
  skills: string;
  /** JSON object. */
  metadata: string;
  created_at: number;
  updated_at: number;
}

export interface JobsTable {
  id: string;
  organization_id: string;
  /** The key on whose behalf the job runs. */
  api_key_id: string;
  agent_id: string;
  conversation_id: string;
  skill_category: string;
  skill_name: string;
  skill_version: string;
  trigger_type: TriggerType;
  user_id: string;
  status: Generated<JobStatus>;
  /** Attempts begun and charged; a claim adds one, a displacement gives it back. */
  attempt: Generated<number>;
  max_attempts: number;
  /** Grows with every claim and never shrinks: the fence against late results. */
  epoch: Generated<number>;
  /** Unattributed executor deaths that this job was in flight for. */
  deaths: Generated<number>;
  /** When the next (or last) attempt may begin. */
  run_at: number;
  /** What the sweep looks at: `run_at` while queued, the lease's end while active, null when final. */
  due_at: number | null;
  started_at: number | null;
  finished_at: number | null;
  cancel_requested_at: number | null;
  retry_of: string | null;
  /** JSON. */
  input: string;
  /** JSON, null until completed. */
  output: string | null;
  /** JSON `{code, message}`, null unless failed or cancelled. */
  error: string | null;
  /** JSON `{fraction, note}`, the last one reported. */
  progress: string | null;
  created_at: number;
}

/**
 * How many jobs there are of each kind, so that no list ever counts rows. Each process adds to rows
 * of its own (`writer`), so processes never wait for each other here; the sum is the count.
 */
export interface JobCountsTable {
  organization_id: string;
  agent_id: string;
  skill_category: string;
  skill_name: string;
  skill_version: string;
  trigger_type: TriggerType;
  status: JobStatus;
  writer: string;
  count: number;
}

/** What a run said while it ran, for the event stream. Final states are read off the job itself. */
export interface JobEventsTable {
  job_id: string;
  /** The claim during which it was said, so that a late claim never mixes with a new one. */
  epoch: number;
  /** Counts from 1 inside the claim. */
  n: number;
  type: string;
  /** JSON. */
  data: string;
  created_at: number;
}

export interface ConversationsTable {
  id: string;
  organization_id: string;
  agent_id: string;
  user_id: string;
  status: ConversationStatus;
  trigger_type: TriggerType;
  created_at: number;
  updated_at: number;
}

/** As `JobCountsTable`, for conversations. */
export interface ConversationCountsTable {
  organization_id: string;
  agent_id: string;
  trigger_type: TriggerType;
  status: ConversationStatus;
  writer: string;
  count: number;
}

export interface MessagesTable {
  conversation_id: string;
  id: string;
  job_id: string;
  role: MessageRole;
  content: string;
  prompt_tokens: Generated<number>;
  completion_tokens: Generated<number>;
  created_at: number;
}

/** The outbox: appended in the transaction that makes the event true, read after a cursor. */
export interface EventsTable {
  seq: Generated<number>;
  id: string;
  organization_id: string;
  agent_id: string;
  type: string;
  /** JSON object. */
  data: string;
  created_at: number;
}

export interface IdempotencyKeysTable {
  /** Id of the API key or the trigger under which the key was used. */
  owner: string;
  idempotency_key: string;
  /** SHA-256 of what was asked for. */
  fingerprint: string;
  job_id: string;
  created_at: number;
}

export interface Tables {
  organizations: OrganizationsTable;
  api_keys: ApiKeysTable;
  skills: SkillsTable;
  agents: AgentsTable;
  jobs: JobsTable;
  job_counts: JobCountsTable;
  job_events: JobEventsTable;
  conversations: ConversationsTable;
  conversation_counts: ConversationCountsTable;
  messages: MessagesTable;
  events: EventsTable;
  idempotency_keys: IdempotencyKeysTable;
}
