/**
 * Every table as the code sees it. Moments are milliseconds since the epoch, flags are 0 or 1,
 * and JSON is stored as text, so that both databases hold the same values. One file, because the type of a
 * database needs all tables, slices share some of them, and database must not import slices.
 */
import type { Generated } from 'kysely';
import type { Priority } from '../../kernel/priority.ts';

export const jobStatuses = [
  'queued',
  'active',
  'waiting',
  'completed',
  'failed',
  'cancelled',
] as const;
export type JobStatus = (typeof jobStatuses)[number];
export const triggerTypes = ['api', 'scheduled', 'webhook'] as const;
export type TriggerType = (typeof triggerTypes)[number];
export const conversationStatuses = ['active', 'completed', 'failed'] as const;
export type ConversationStatus = (typeof conversationStatuses)[number];
export const messageRoles = ['user', 'assistant', 'system', 'tool'] as const;
export type MessageRole = (typeof messageRoles)[number];

/** Which version of a skill a row is about. */
interface SkillVersion {
  skill_category: string;
  skill_name: string;
  skill_version: string;
}

/**
 * How many rows have a status, so that no list ever counts rows. Each process adds to rows of its own
 * (`writer`), so processes never wait for each other here; the sum is the count.
 */
interface Counted<Status> {
  status: Status;
  writer: string;
  count: number;
}

export interface OrganizationsTable {
  id: string;
  /** In turns. */
  weight: Generated<number>;
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
  /** 1 for the one that the administrator acts with in the console. */
  console: Generated<number>;
}

/** Of one row: random bytes, hex, from which the sessions of the console are signed. */
export interface ConsoleSecretsTable {
  id: number;
  secret: string;
}

/** A session of the console that was signed out. */
export interface EndedSessionsTable {
  id: string;
  /** When no cookie of the session is valid any more. */
  expires_at: number;
}

/** The row of the last probe of writes; at most one. */
export interface WriteProbesTable {
  id: number;
  content: string;
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
  /** The field of an input that holds another time limit; null when the skill names none. */
  timeout_field: string | null;
  max_attempts: number;
  /** 1 while a loaded source defines it. */
  defined: number;
  /** 1 after an administrator deprecated this version. */
  deprecated: number;
  /** 1 where `x-conversation-id` may continue an earlier conversation. */
  continues_conversations: Generated<number>;
  /** The field of an input that holds the task; null when the skill names none. */
  task_field: string | null;
  /** The field of an output that holds the answer; null when the skill names none. */
  answer_field: string | null;
  /** JSON object: how it appears to clients of the Model Context Protocol; null for the defaults. */
  mcp: string | null;
  /** JSON object of the settings that it declares, by name. */
  config: Generated<string>;
  /** JSON array of `{ input, output? }`. */
  examples: Generated<string>;
  /** JSON: its limits of runs at a time. */
  concurrency: Generated<string>;
  /** JSON: how often its runs start. */
  rate: Generated<string>;
  /** 1 where an error with `retryAfterMs` puts off all its runs. */
  slows_down: Generated<number>;
  /** The service that runs it; null for a skill that executors load. */
  remote_source_id: string | null;
  /** JSON array of the organizations that it belongs to; null for all. */
  organizations: string | null;
  created_at: number;
  updated_at: number;
}

/** A service outside whose operations are skills. */
export interface RemoteSourcesTable {
  id: string;
  /** What it speaks: `mcp`, or `api` for operations of an OpenAPI document. */
  kind: string;
  /** Unique among those of its kind; part of its skills' category. */
  name: string;
  /** JSON object, without secrets. */
  settings: string;
  /** JSON object, encrypted; null where there are none. */
  secrets: string | null;
  /** The text that describes it, where the operator gave one. */
  document: string | null;
  /** JSON array of the organizations that its skills belong to, `["*"]` for all; null where none were ever named. */
  organizations: string | null;
  /** JSON object: what its last successful refresh told of it. */
  about: string;
  status: 'new' | 'available' | 'failing' | 'needs_authorization';
  /** Why its last refresh failed; null after one that succeeded. */
  fault: string | null;
  fault_at: number | null;
  refreshed_at: number | null;
  created_at: number;
  updated_at: number;
}

/** The account of an organization at a remote source, which a person of it has granted. */
export interface RemoteAccountsTable {
  source_id: string;
  organization_id: string;
  /** The authorization server. */
  issuer: string;
  /** Address of the source when it was connected: tokens go to no other. */
  url: string;
  client_id: string;
  /** Scopes that were granted, separated by spaces; null where the server does not say. */
  scope: string | null;
  /** Scopes that the source has asked for since. */
  required_scope: string | null;
  /** `needs_authorization` where a person has to connect it again. */
  status: 'connected' | 'needs_authorization';
  fault: string | null;
  /** JSON object, encrypted: tokens, the client, and where tokens are asked for. Null once they were refused. */
  tokens: string | null;
  /** When the access token ends; null where the server does not say. */
  expires_at: number | null;
  /** Grows with each change of the tokens: one that was made with earlier tokens is refused. */
  revision: number;
  /** Until when one process may ask for new tokens alone. */
  refreshing_until: number | null;
  connected_at: number;
  updated_at: number;
}

/** An authorization that a person was sent to, and that has not come back yet. */
export interface RemoteAuthorizationsTable {
  /** SHA-256 of its state, hex. */
  state_hash: string;
  source_id: string;
  organization_id: string;
  /** The session of the console that began it. */
  session_id: string;
  /** JSON object, encrypted. */
  details: string;
  expires_at: number;
}

/** A client that was registered with an authorization server for a source. */
export interface RemoteOauthClientsTable {
  source_id: string;
  issuer: string;
  redirect_uri: string;
  /** JSON object, encrypted. */
  client: string;
  created_at: number;
}

export const remoteSkillStates = ['active', 'quarantined', 'withdrawn', 'rejected'] as const;
export type RemoteSkillState = (typeof remoteSkillStates)[number];

/** One version of a skill of a remote source. */
export interface RemoteSkillVersionsTable {
  source_id: string;
  skill_name: string;
  version: string;
  /** Its name at the source. */
  tool: string;
  /** SHA-256 over its name, its description and its schemas, hex. */
  digest: string;
  state: RemoteSkillState;
  /** Why it is not active, or what has changed since; null where nothing is to be said. */
  reason: string | null;
  /** JSON object: what the source told of it. */
  definition: string;
  /** What differs from the version before it; null for a first one. */
  difference: string | null;
  /**
   * JSON array of the organizations whose accounts were shown it; null where it was shown without an account, so to all
   * organizations of its source.
   */
  organizations: string | null;
  created_at: number;
  updated_at: number;
  /** When it was accepted, by its first import or by an operator; null while it was not. */
  activated_at: number | null;
}

/** A process of a cluster, as it last said of itself. */
export interface ProcessesTable {
  id: string;
  /** JSON array of strings. */
  roles: string;
  version: string;
  /** JSON array of the skills that it has loaded, as `category/version/name`. */
  skills: string;
  /** JSON array of what it announces that it can do; empty for an older version. */
  capabilities: string;
  /** JSON object: by queue the slots of its worker and how many are taken; empty for an older version. */
  slots: string;
  started_at: number;
  seen_at: number;
  /** When it last claimed a job from a queue; 0 before the first. */
  last_claim_at: number;
  /** When it last began a job, also one that it accepted itself; 0 before the first. */
  last_job_at: number;
}

export interface AgentsTable {
  organization_id: string;
  id: string;
  name: string;
  description: string;
  status: 'active' | 'paused';
  instructions: string;
  model: string | null;
  /** JSON object: the texts that its instructions name in double braces. */
  variables: Generated<string>;
  /** JSON object: the settings that are set, without nulls. */
  model_settings: Generated<string>;
  /** JSON array: the models that are asked in place of `model`, in their order. */
  fallback_models: Generated<string>;
  /** JSON array of patterns. */
  skills: string;
  /** JSON array of patterns: the skills that its model may call only with a person's approval. */
  approvals: Generated<string>;
  /** JSON array of rules about the calls of its tools, in order (`src/core/agents/tool-rules.ts`). */
  tool_rules: Generated<string>;
  /** JSON: the skills that see texts first, in order. */
  guards: Generated<string>;
  /** JSON array of ids: the agents that its model may give tasks to. */
  agents: Generated<string>;
  /** JSON object. */
  metadata: string;
  /** What its runs and its model may do with its memory. */
  memory: Generated<'read_write' | 'user' | 'read' | 'off'>;
  /** JSON `{limit}`: the memories that come into a prompt by themselves; null for none. */
  recall: Generated<string | null>;
  /** JSON: how memories are formed after its conversations; null where none are. */
  memory_formation: Generated<string | null>;
  /** JSON: how its model may write the profiles of users; null where it may not. */
  profile: Generated<string | null>;
  /** That of jobs whose requests give none; null for normal. */
  priority: Generated<Priority | null>;
  /** 1: what its model is sent is kept, where the organization allows it. */
  keep_prompts: Generated<number>;
  /** Which version it is. */
  version: Generated<number>;
  created_at: number;
  updated_at: number;
}

/** When an agent of this id was deleted last; kept for a short time. */
export interface RemovedAgentsTable {
  organization_id: string;
  agent_id: string;
  removed_at: number;
}

/** An agent as it was: one row a version. */
export interface AgentVersionsTable {
  organization_id: string;
  agent_id: string;
  /** Counts from 1. */
  n: number;
  /** JSON object: what decided how it works. */
  fields: string;
  /** JSON array: the fields that differ from the version before. */
  changed: string;
  /** The version whose fields it has again; null for others. */
  restored_from: number | null;
  created_at: number;
}

export interface JobsTable extends SkillVersion {
  id: string;
  organization_id: string;
  /** The key on whose behalf the job runs. */
  api_key_id: string;
  agent_id: string;
  conversation_id: string;
  trigger_type: TriggerType;
  user_id: string;
  /** 1 where a client named the user; else `user_id` is the name of the key or the trigger. */
  for_user: Generated<number>;
  /** When its input, output and record were erased on behalf of its user; null where they were not. */
  erased_at: Generated<number | null>;
  status: Generated<JobStatus>;
  /** 0 high, 1 normal, 2 low. */
  priority: Generated<number>;
  /** Attempts begun and charged; a claim adds one, a displacement gives it back. */
  attempt: Generated<number>;
  max_attempts: number;
  /** Grows with every claim and never shrinks: the fence against late results. */
  epoch: Generated<number>;
  /** Executor deaths during this job's runs that were attributed to no run. */
  deaths: Generated<number>;
  /** The process that made the last claim: a number that it has drawn; 0 where an earlier version has claimed the job. */
  claimed_by: Generated<number>;
  /**
   * The epoch of the last claim: negative from the claim on, positive once its code may have begun. Only an attempt that
   * is the last one records its beginning. Another number is of an earlier version, which records neither.
   */
  begun: Generated<number>;
  /** Attempts before the count began anew, because a run of a model had made progress; `max_attempts` includes them. */
  attempts_before: Generated<number>;
  /** Claims in a row of a model's run that ended without a new turn, not counting those that ended in a wait. */
  idle_claims: Generated<number>;
  /** When the next (or last) attempt may begin. */
  run_at: number;
  /**
   * What the sweep looks at: `run_at` while queued, the lease's end while active, null when final. While
   * waiting, the earliest moment at which one of its waits ends, or the past once one has ended.
   */
  due_at: number | null;
  /** When the attempt began; it goes on where a wait interrupted it. */
  started_at: number | null;
  /** When the attempt last went on after a wait; null before the first. */
  resumed_at: Generated<number | null>;
  /** Milliseconds that the attempt was active before its last wait. */
  active_ms: Generated<number>;
  finished_at: number | null;
  cancel_requested_at: number | null;
  /** A job that has not begun by then is cancelled; null for one that does not expire. */
  expires_at: Generated<number | null>;
  retry_of: string | null;
  /** When the first of the jobs was accepted from whose records it goes on, and their ids; null where it begins anew. */
  resumes: Generated<string | null>;
  /** The batch with which it was accepted; null for other jobs. */
  batch_id: Generated<string | null>;
  /** The gate at which it waits for a place; null for a job that may begin when it is due. */
  held_by: Generated<string | null>;
  /** 1 once a gate has held it or given it a place, so that it may have places. */
  gated: Generated<number>;
  /** The client's own key for limits that count by it (`x-concurrency-key`); null without one. */
  concurrency_key: Generated<string | null>;
  /** Its key among the jobs of its skill, of which the latest or the first one runs; null without one. */
  job_key: Generated<string | null>;
  /** The job whose run has taken its message, and with which it ends; null for others. */
  delivered_to: Generated<string | null>;
  /** The later job of its key that has taken its place; null for others. */
  replaced_by: Generated<string | null>;
  /** 1 once an earlier claim of it is known to have begun its code; kept of jobs that have a key or may expire alone. */
  has_begun: Generated<number>;
  /** The job whose run started this one, and the number of the step there; null for other jobs. */
  parent_job_id: Generated<string | null>;
  parent_step: Generated<number | null>;
  /** How many jobs are above it: 0 without a parent. */
  depth: Generated<number>;
  /** JSON. */
  input: string;
  /** JSON: fields of the agent that it has instead of the saved ones; null for the agent as it is. */
  agent_overrides: string | null;
  /** JSON: the values that its instructions are filled with; before its first request to a model the name of its user alone. */
  instruction_values: string | null;
  /** The agent's version at its last request to a model; null before one. */
  agent_version: Generated<number | null>;
  /** JSON, null until completed. */
  output: string | null;
  /** JSON `{code, message}`, null unless failed or cancelled. */
  error: string | null;
  /** JSON `{fraction, note}`, the last one reported. */
  progress: string | null;
  created_at: number;
}

/** Jobs that were accepted with one request. */
export interface BatchesTable {
  id: string;
  organization_id: string;
  api_key_id: string;
  /** Items that have become jobs, and items that were refused. */
  accepted: number;
  refused: number;
  /** JSON array: the answers of the items, in their order. */
  results: string;
  /** Unique among those of its key; null without one, and once it is forgotten. */
  idempotency_key: string | null;
  fingerprint: string | null;
  /** Jobs that had ended in each way when all had; before, those of them that retention has deleted. */
  completed: Generated<number>;
  failed: Generated<number>;
  cancelled: Generated<number>;
  created_at: number;
  completed_at: number | null;
}

/** How many jobs there are of each kind. */
export interface JobCountsTable extends SkillVersion, Counted<JobStatus> {
  organization_id: string;
  agent_id: string;
  trigger_type: TriggerType;
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
  /** The conversation whose messages it begins with; of a fork of a fork the first of them. Null for one that is no fork. */
  forked_from: Generated<string | null>;
  /** Failed summaries in a row that may have been charged. */
  failed_summaries: Generated<number>;
  /** Until then no other one is tried; null where the last one did not fail. */
  next_summary_at: Generated<number | null>;
  /** The version of the agent with which the last one failed. */
  failed_summaries_version: Generated<number | null>;
  /** When memories are to be formed of what was said; null where none are. */
  forms_at: Generated<number | null>;
  /** The last message of which memories have been formed; null before the first. */
  formed_through: Generated<string | null>;
}

/** How many conversations there are of each kind. */
export interface ConversationCountsTable extends Counted<ConversationStatus> {
  organization_id: string;
  agent_id: string;
  trigger_type: TriggerType;
}

export interface MessagesTable {
  conversation_id: string;
  id: string;
  job_id: string;
  role: MessageRole;
  content: string;
  /** Tokens of the model call that gave this message; 0 where no model was asked. */
  prompt_tokens: Generated<number>;
  completion_tokens: Generated<number>;
  /** Which of the two the provider did not report (their column is 0 then): 1 prompt, 2 completion, 3 both. */
  unreported: Generated<number>;
  /** Parts of the two; 0 where the provider did not report them. */
  cache_read_tokens: Generated<number>;
  cache_write_tokens: Generated<number>;
  reasoning_tokens: Generated<number>;
  /** Nano-dollars for the tokens that were reported; null where the price is unknown, and where no model was asked. */
  cost: Generated<number | null>;
  /** 1 if a later run that continues the conversation gets this message; 2 more of a summary. */
  dialogue: Generated<number>;
  /** The model that wrote it, as provider/model; null for other messages, and for those of earlier versions. */
  model: Generated<string | null>;
  /** JSON: the message as a model takes it, null for a message that no model wrote or read. */
  data: Generated<string | null>;
  created_at: number;
}

/** Steps of a run that wait, and that its code requests: for a moment, an event, a person, another job. */
export const codeWaitKinds = ['sleep', 'event', 'approval', 'run'] as const;
/** With the wait for a provider of models, which no code requests. */
export const waitKinds = [...codeWaitKinds, 'provider'] as const;
export type WaitKind = (typeof waitKinds)[number];
/**
 * A call of a model, a tool that it called, a guard that judged a text, a request to a model that failed, a skill that the code of a run
 * called, a named step of the run's own code, or a wait.
 */
export type StepKind = 'model' | 'tool' | 'guard' | 'generate' | 'skill' | 'step' | WaitKind;
export const stepStatuses = ['active', 'waiting', 'completed', 'failed', 'interrupted'] as const;
export type StepStatus = (typeof stepStatuses)[number];

/**
 * What a job that thinks has done so far: each call of a model, and each tool that a model called. A
 * call is a row before it is made, so that what was begun and never ended is known too.
 */
export interface JobStepsTable {
  job_id: string;
  /** Counts from 1 inside the job. */
  n: number;
  /** The claim that began it. */
  epoch: number;
  /** Which `generate` of the run it belongs to, or the key of a step of the run's own code: the same in every attempt. */
  generation: string;
  /**
   * The step that asked for it: of a tool the model's, of what a tool or a called skill does that step;
   * null for what the run's own code does, and for steps from before this was recorded.
   */
  parent: number | null;
  /**
   * Counts from 1 inside the generation; a tool has the turn of the call that asked for it. Of what code asks
   * for the number among equal names.
   */
  turn: number;
  kind: StepKind;
  /** The model (`provider/model`), or the tool: a skill's `category/version/name`, or `remember`. */
  name: string;
  /** The model's own id of a tool call, null for a model's step. */
  call_id: string | null;
  status: StepStatus;
  /** JSON `{code, message}`, null where nothing went wrong. */
  error: string | null;
  /** The message in which it resulted, null while there is none. */
  message_id: string | null;
  /** JSON: what the tool or the skill did to the agent's memory, null where that is nothing. */
  memory: string | null;
  /**
   * JSON: `{output, said}` of a skill that the run's own code called, `{value}` of a named step, what a wait
   * resulted in, the whole result of a tool whose message has only the beginning, the text that a guard gave in place
   * of another; null while there is none, and of a model.
   */
  result: string | null;
  /**
   * A digest of the input of a step of code or a wait (`inputDigestOf`); of the call of a tool that has
   * started with a person's approval; else null.
   */
  digest: Generated<string | null>;
  /** Of a tool, JSON: what the rules of the agent have decided about the call; null where none had to. */
  rule: Generated<string | null>;
  /** Of a guard, JSON: what it has decided about which text; null while it has not. */
  guard: Generated<string | null>;
  /** Of a call of a model, JSON: how it gave the model the files of its messages; null without any. */
  files: Generated<string | null>;
  /** When a wait ends by itself; null for other kinds. */
  due_at: Generated<number | null>;
  /** The attempt in which a step of code last ended, or a call of a model began; null for other kinds. */
  attempt: Generated<number | null>;
  /** The number of the job's last step when a named step failed; null otherwise. */
  seen_to: Generated<number | null>;
  /**
   * The place of the end of a named step, a called skill or a wait in the order in which the job's runs got
   * such ends; null while no run has got it, and for other kinds.
   */
  told: Generated<number | null>;
  /** Null for a tool, while active, and where the provider did not report it. */
  prompt_tokens: number | null;
  completion_tokens: number | null;
  /** Parts of the two; null for a tool, while active, and where the provider did not report them. */
  cache_read_tokens: Generated<number | null>;
  cache_write_tokens: Generated<number | null>;
  reasoning_tokens: Generated<number | null>;
  /** Tokens held back in budgets while it is active; 0 afterwards. */
  reserved: Generated<number>;
  /** Tokens charged to budgets in place of those that were not reported. */
  estimated: Generated<number>;
  /** The tokens that its prompt was expected to have; null for a tool. */
  expected_prompt: Generated<number | null>;
  /** JSON: the price of its tokens when it began; null where that is unknown, and for a tool. */
  price: Generated<string | null>;
  /** Nano-dollars for the tokens that were reported; null as the tokens are, and where the price is unknown. */
  cost: Generated<number | null>;
  /** The same of `estimated` and of `reserved`. */
  estimated_cost: Generated<number>;
  reserved_cost: Generated<number>;
  started_at: number;
  finished_at: number | null;
}

/** What a waiting step waits for, while it waits. */
export interface EventWaitsTable {
  organization_id: string;
  event: string;
  /** Empty where the run gave none. */
  key: string;
  job_id: string;
  /** The number of the step. */
  n: number;
}

/** A gate at which jobs, or calls of running jobs, wait for a place. */
export interface GatesTable {
  /** The limit in words and whose work it counts. */
  name: string;
  /** Places that it has passed on. */
  turn: Generated<number>;
  /** Whose work had the last one. */
  last_organization: Generated<string>;
}

/** A limit or a pause that an operator has set: how many places a gate has. */
export interface GateSettingsTable {
  name: string;
  places: number;
  updated_at: number;
}

/** A place at a gate, or the wait of a running job's call for one. */
export interface PlacesTable {
  gate: string;
  job_id: string;
  /** 0 for the job itself, else the number of the step that calls the skill; -1 less that where `is_held` is -2. */
  n: number;
  organization_id: string;
  /**
   * 1 for a place; of a call that waits 0 at the gate at which it waits, -1 at the others of which it needs places; -2 where
   * the gate has passed the work over, which needs places of several.
   */
  is_held: number;
  /** The numbers of the calls with places within which the call was made, separated by spaces. */
  within_calls: Generated<string>;
  /** An id of the moment: the calls of an organization get places in this order. */
  since: string;
}

/** A pause that ends by itself. */
export interface TimedPausesTable {
  name: string;
  until: number;
}

/** What is known of the calls that a provider of models takes with one credential. */
export interface ProviderPacesTable {
  /** The provider, and a digest of its address and credential. */
  name: string;
  /** JSON. */
  state: string;
  changed_at: number;
}

/** Starts that count at a rate until a moment. */
export interface RateStartsTable {
  /** The name of the rate's gate. */
  gate: string;
  until: number;
  starts: number;
}

/** A job that has failed or is cancelled, and below which jobs are left to be cancelled. */
export interface FamilyCancellationsTable {
  job_id: string;
}

/** A received event. Runs that were accepted before it can take it. */
export interface ReceivedEventsTable {
  /** Ordered by time. */
  id: string;
  organization_id: string;
  event: string;
  /** Empty where the sender gave none. */
  key: string;
  /** The only job that can take it; null for any. */
  job_id: string | null;
  /** 1 once a run has taken it. */
  taken: Generated<number>;
  /** 1 once all jobs that waited for it when it came have got it. */
  told: Generated<number>;
  created_at: number;
  /** JSON. */
  data: string;
}

/** The events that are stored for an organization: the sum over its rows, so that few transactions change the same one. */
export interface EventTotalsTable {
  organization_id: string;
  shard: number;
  events: number;
  /** Of their data. */
  bytes: number;
}

/** The last event that a job was given of those with this name and key. */
export interface EventPositionsTable {
  organization_id: string;
  event: string;
  key: string;
  job_id: string;
  event_id: string;
}

export interface EventIdempotencyKeysTable {
  /** Id of the API key or the trigger under which the key was used. */
  owner: string;
  idempotency_key: string;
  /** SHA-256 of what was sent. */
  fingerprint: string;
  event_id: string;
  /** How many jobs got it while the request was under way. */
  delivered: number;
  created_at: number;
}

export const approvalStatuses = [
  'pending',
  'approved',
  'rejected',
  'expired',
  'cancelled',
] as const;
export type ApprovalStatus = (typeof approvalStatuses)[number];

/** A question to a person, asked by a waiting step of a job. */
export interface ApprovalsTable {
  /** Ordered by time. */
  id: string;
  organization_id: string;
  agent_id: string;
  conversation_id: string;
  job_id: string;
  /** The number and the name of the step. */
  n: number;
  step: string;
  title: string;
  /** JSON. */
  details: string;
  /** SHA-256 of exactly what is asked. */
  digest: string;
  status: ApprovalStatus;
  requested_at: number;
  expires_at: number;
  /** When it stopped being pending. */
  decided_at: number | null;
  /** The id of the API key or of the session of the console; null without a decision. */
  decided_by: string | null;
  decided_by_kind: 'api_key' | 'console' | null;
  /** The API key with which a session of the console acts. */
  decided_by_key: string | null;
  reason: string | null;
  /** JSON Schema of the form that the decision fills in; null without one. */
  fields: string | null;
  /** JSON object: what was filled in; null without a form, and where it was not approved. */
  answer: string | null;
}

/** Whose tokens are counted and limited. */
export const usageOwnerKinds = [
  'agent',
  'deleted_agent',
  'api_key',
  'scheduled_job',
  'user',
  'skill',
  'embedding_model',
] as const;
export type UsageOwnerKind = (typeof usageOwnerKinds)[number];

/** Tokens that an owner used on a day; calls count on the day on which they began. */
export interface TokenUsageTable {
  organization_id: string;
  owner_kind: UsageOwnerKind;
  owner_id: string;
  /** `YYYY-MM-DD`, UTC. */
  day: string;
  prompt_tokens: Generated<number>;
  completion_tokens: Generated<number>;
  /** Charged for calls whose provider reported too little. */
  estimated_tokens: Generated<number>;
  /** Held back for calls under way. */
  reserved_tokens: Generated<number>;
  calls: Generated<number>;
  /** Of these, the ones whose provider reported nothing or not all. */
  unreported_calls: Generated<number>;
  /** Parts of the tokens that were reported. */
  cache_read_tokens: Generated<number>;
  cache_write_tokens: Generated<number>;
  reasoning_tokens: Generated<number>;
  /** Nano-dollars for the tokens that were reported, were estimated, and are held back. */
  cost: Generated<number>;
  estimated_cost: Generated<number>;
  reserved_cost: Generated<number>;
  /** Of the calls, the ones whose price is unknown. */
  unpriced_calls: Generated<number>;
}

/** What an owner may use; null is no limit. */
export interface TokenBudgetsTable {
  organization_id: string;
  owner_kind: UsageOwnerKind;
  owner_id: string;
  tokens_per_day: number | null;
  tokens_per_month: number | null;
  /** Nano-dollars. */
  cost_per_day: Generated<number | null>;
  cost_per_month: Generated<number | null>;
  updated_at: number;
}

/** How an organization reaches a provider of models. */
export interface CredentialsTable {
  organization_id: string;
  provider: string;
  /** Encrypted; null where the provider asks for none. */
  api_key: string | null;
  base_url: string | null;
  /** What the provider speaks; null for what is usual at its address. */
  protocol: string | null;
  created_at: number;
  updated_at: number;
}

/** Organizations' values of the settings that skills declare. A value is one of all versions of its skill. */
export interface SkillSettingsTable {
  organization_id: string;
  category: string;
  skill_name: string;
  name: string;
  /** Encrypted. */
  value: string;
  /** 1 where the version that it was set for declares it as secret. */
  secret: number;
  created_at: number;
  updated_at: number;
}

/** Sessions that follow the events of an organization, such as those of `webhooks listen`. */
export interface WebhookListenersTable {
  organization_id: string;
  id: string;
  api_key_id: string;
  /** Empty: events of all agents. */
  agent_id: string;
  /** JSON array of event types. */
  events: string;
  expires_at: number;
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

/** How far an erasure of a user's data that is not done has looked through the events of the organization. */
export interface UserErasuresTable {
  organization_id: string;
  user_id: string;
  txid: string;
  seq: number;
}

/** The keys of jobs, each with the newest job that was accepted with it. */
export interface JobKeysTable {
  organization_id: string;
  /** `category/version/name`. */
  skill: string;
  job_key: string;
  job_id: string;
  /** The first of the requests that made this job what it is. */
  first_at: number;
  /** 1 if a debounce has made or changed this job; its maximum counts from `first_at`. */
  is_debounced: number;
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

export interface ScheduledJobsTable extends SkillVersion {
  id: string;
  organization_id: string;
  /** The key that created it or last changed what it runs; its runs are made in this key's name. */
  api_key_id: string;
  agent_id: string;
  /** As it was given. */
  cron_expression: string;
  /** Its normal form and the time zone, which uniqueness compares. */
  cron_key: string;
  /** A name of the IANA database; null for UTC. */
  timezone: string | null;
  /** JSON object. */
  input: string;
  /** That of its jobs; null for the agent's. */
  priority: Generated<Priority | null>;
  enabled: number;
  /** The first slot that has not been dealt with. */
  next_run_at: number;
  created_at: number;
  /** Grows with every change by a client, so it also tells two versions of the row apart. */
  updated_at: number;
}

export type LastRunStatus = 'active' | 'completed' | 'failed';

/** How the last run of a scheduled job went; there is a row for each scheduled job. */
export interface ScheduledJobLastRunsTable {
  scheduled_job_id: string;
  last_run_at: number | null;
  last_run_status: LastRunStatus | null;
  last_run_job_id: string | null;
}

/** What became of a slot. */
export type SlotOutcome =
  | 'fired'
  | 'caught_up'
  | 'missed'
  | 'overlapped'
  | 'agent_paused'
  | 'key_revoked'
  | 'skill_inactive'
  | 'insufficient_scope'
  | 'input_invalid'
  | 'run_now';

/** One row for each slot that has come; many that were missed long ago may share one. */
export interface ScheduledRunsTable {
  id: string;
  organization_id: string;
  scheduled_job_id: string;
  /** The minute of the cron expression; null for a run that a client asked for. */
  slot: number | null;
  scheduled_for: number;
  outcome: SlotOutcome;
  /** How many slots the row stands for. */
  slots: number;
  /** A sentence, null when there is nothing to explain. */
  message: string | null;
  job_id: string | null;
  /** 1 when the run may not be tried again: its scheduled job was deleted or disabled. */
  unwanted: number;
  /** 0 while its job has not ended; 1 also where nothing ran. */
  ended: number;
  created_at: number;
}

/** Whose memories they are. The number stands in every row and word of theirs, so it is short. */
export interface MemoryOwnersTable {
  id: Generated<number>;
  organization_id: string;
  /**
   * The agent. Of its users with a slash behind it, so that a process of an earlier version does not take their
   * memories for the agent's own.
   */
  agent_id: string;
  /** 0 for the agent's own memories, 1 for those of a user, 2 for those of all its users together. */
  kind: Generated<0 | 1 | 2>;
  /** Empty where it is not a user's. */
  user_id: Generated<string>;
  /** No memory of this owner ends before; null where none ends. */
  next_expiry: Generated<number | null>;
  /** How many memories there are. */
  count: Generated<number>;
  /** 1 once the agent was deleted: no query finds these memories, and they are deleted in batches. */
  removed: Generated<number>;
}

/** What an agent always knows of one of its users. */
export interface ProfilesTable {
  /** Id in `memory_owners`, of a user. */
  owner: number;
  content: string;
  /** Counts its changes, from 1. */
  version: number;
  created_at: number;
  updated_at: number;
  /** The job that wrote it last and its conversation; null where a client did. */
  job_id: string | null;
  conversation_id: string | null;
}

/** How many memories of an owner have a tag. */
export interface MemoryTagsTable {
  owner: number;
  tag: string;
  count: number;
}

export interface MemoriesTable {
  /** Grows in the order of recording. */
  seq: Generated<number>;
  /** Id in `memory_owners`. */
  owner: number;
  id: string;
  tag: string;
  word_count: number;
  created_at: number;
  updated_at: number;
  /** JSON object. */
  metadata: string;
  /** The words of the content as they are searched, each between spaces. */
  words: string;
  content: string;
  /** The terms of its entry in the index; null where an earlier version made that, of its words alone. */
  terms: string | null;
  /** The user whose memory it is; null for the agent's own. */
  user_id: Generated<string | null>;
  /** Id in `memory_owners` of all users together; null for the agent's own. */
  together: Generated<number | null>;
  /** The job that wrote it last, its conversation and its step; null where no job did. */
  job_id: Generated<string | null>;
  conversation_id: Generated<string | null>;
  step: Generated<number | null>;
  /** The message that it was formed of; null where it was not. */
  message_id: Generated<string | null>;
  /** From then on it is not found. */
  expires_at: Generated<number | null>;
  /** Of an agent's own: the user of the run that wrote it; null where that had none, or a client wrote it. */
  written_for: Generated<string | null>;
  /** 1 where a client has changed the content after the job. */
  edited: Generated<number>;
  /** Id in `embedding_models`: the model that has read it; 0 where none has. */
  embedding: Generated<number>;
}

/** A call of a model for embeddings that holds tokens of a budget; gone when it has ended. */
export interface EmbeddingCallsTable {
  id: string;
  organization_id: string;
  /** `deleted_agent` from the moment when a new agent has the id. */
  owner_kind: UsageOwnerKind;
  owner_id: string;
  /** `provider/model`. */
  model: string;
  reserved_at: number;
  /** Tokens, and nano-dollars. */
  reserved: number;
  reserved_cost: number;
  /** Tokens that it most likely has. */
  expected: number;
  /** JSON, as on a step; null where it is unknown. */
  price: string | null;
  /** When its process must have ended. */
  lost_at: number;
}

/** Models that make vectors of memories; another one where a model gives vectors of other dimensions. */
export interface EmbeddingModelsTable {
  id: Generated<number>;
  /** `provider/model`. */
  model: string;
  /** Null before its first answer. */
  dimensions: number | null;
  /** When a process last started with it: the latest one's vectors are made. */
  activated_at: number;
  /** The process that makes vectors, and until when. */
  holder: string | null;
  leased_until: Generated<number>;
}

/** What a memory means, by its `seq`; none for a text that the model does not take. */
export interface MemoryVectorsTable {
  seq: number;
  /** Id in `embedding_models`. */
  model: number;
  /** 32-bit floats, little-endian, of length 1. */
  vector: Uint8Array;
}

/** The signs of each vector's dimensions, by which a search finds those to compare. */
export interface MemoryCodesTable {
  /** Grows in the order of recording. */
  n: Generated<number>;
  seq: number;
  /** Ids in `memory_owners`, as the memory has them. */
  owner: number;
  together: number | null;
  model: number;
  /** Bytes in SQLite, bits in PostgreSQL. */
  code: Uint8Array;
}

/** Full-text index: which memories, by their `seq`, have a term. */
export interface MemoryIndexTable {
  rowid: number;
  tokens: string;
  /** SQLite's commands to the index: `delete` takes the row with these tokens out. */
  memory_index: Generated<string>;
}

/** How far a reader of the outbox has come. */
export interface EventCursorsTable {
  name: string;
  /** On PostgreSQL the transaction of the last event read; `0` on SQLite, which needs none. */
  txid: string;
  seq: number;
}

export interface WebhooksTable {
  id: string;
  organization_id: string;
  agent_id: string;
  url: string;
  /** Host and port of `url`: what attempts at a time are limited by. */
  host: string;
  /** JSON array of event types. */
  events: string;
  /** What deliveries are signed with; encrypted where `secret_sealed` is 1. */
  secret: string;
  secret_sealed: Generated<number>;
  active: number;
  /** 1 from a failed delivery to the next one that arrives. */
  failing: number;
  consecutive_failures: number;
  /** The place in the outbox after which it gets events. */
  active_since: string;
  /** 1 once it was deleted: no query finds it, and its calls are deleted in batches. */
  removed: number;
  last_delivery_at: number | null;
  created_at: number;
  updated_at: number;
}

export type DeliveryStatus = 'pending' | 'delivering' | 'delivered' | 'failed' | 'cancelled';

export interface WebhookDeliveriesTable {
  id: string;
  webhook_id: string;
  event_id: string;
  event: string;
  status: DeliveryStatus;
  /** Attempts begun. */
  attempts: number;
  /** Of these, the ones that were lost with their process and used up no retry. */
  lost: number;
  /** Grows with every claim: the fence against late results. */
  epoch: number;
  /** When the next attempt is due while pending, the lease's end while delivering, else null. */
  due_at: number | null;
  /** When the last attempt began. */
  started_at: number | null;
  is_test: number;
  redelivery_of: string | null;
  created_at: number;
  finished_at: number | null;
  /** The very text that is signed and sent, at every attempt. */
  body: string;
  /** Id of the job that the event tells of, else of the conversation; null where it is neither. */
  subject: string | null;
}

/** An attempt that has ended. */
export interface WebhookAttemptsTable {
  delivery_id: string;
  /** Counts from 1. */
  attempt: number;
  started_at: number;
  duration_ms: number;
  /** HTTP status, null when there was no answer. */
  status: number | null;
  /** A sentence, null when the receiver took it. */
  error: string | null;
  /** How the answer's body begins. */
  response: string | null;
}

/** How many deliveries of each webhook there are. */
export interface WebhookDeliveryCountsTable extends Counted<DeliveryStatus> {
  webhook_id: string;
}

export interface AgentTriggersTable extends SkillVersion {
  id: string;
  organization_id: string;
  /** The key that created it or last changed what it runs; its runs are made in this key's name. */
  api_key_id: string;
  agent_id: string;
  name: string;
  /** JSON object. */
  input: string;
  /** JSONata, null for the default. */
  mapping: string | null;
  /** The event that its calls become; null where they start runs. */
  event_name: Generated<string | null>;
  /** JSONata to the event's key; null for none. */
  event_key_mapping: Generated<string | null>;
  /** JSON: the mapping to the key of its jobs, and what that key does; null for jobs without one. */
  job_key: Generated<string | null>;
  /** That of its jobs; null for the agent's. */
  priority: Generated<Priority | null>;
  /** Calls in any minute. */
  rate_limit: number;
  /**
   * What signatures are checked with, encrypted where `secret_sealed` is 1; null when calls need not be
   * signed.
   */
  signing_secret: string | null;
  secret_sealed: Generated<number>;
  active: number;
  /** SHA-256 of the token, hex. The token itself is never stored. */
  token_hash: string;
  created_at: number;
  updated_at: number;
}

/**
 * What became of an organization's runs of a skill version in a stretch of time: counters that every
 * process adds to. In a row of its own, with empty names, all skills together.
 */
export interface RunStatisticsTable extends SkillVersion {
  organization_id: string;
  /** How long the stretch is: 60 or 900. */
  seconds: number;
  /** When it begins: a multiple of its length, in UTC. */
  start: number;
  accepted: number;
  completed: number;
  failed: number;
  cancelled: number;
  /** Of the last attempts of those that completed or failed: all together, and the longest. */
  duration_ms: number;
  longest_ms: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Nano-dollars. */
  cost: number;
  /** Calls of models whose tokens were not reported in full, and those whose price is unknown. */
  unreported_calls: number;
  unpriced_calls: number;
}

/** How often an API key ran a skill version on a day. */
export interface SkillKeyRunsTable extends SkillVersion {
  organization_id: string;
  api_key_id: string;
  /** `YYYY-MM-DD`, UTC. */
  day: string;
  runs: number;
  last_used_at: number;
}

/** A call of a trigger that was answered; the last ones of each are kept. */
export interface TriggerCallsTable {
  trigger_id: string;
  id: string;
  received_at: number;
  duration_ms: number;
  /** HTTP status of the answer. */
  status: number;
  /** Code of the error table, null where it was accepted. */
  error: string | null;
  message: string | null;
  job_id: string | null;
  event_id: Generated<string | null>;
  /** 1 where it repeated an earlier call and was answered with its job or event. */
  replayed: number;
  /** Null where its body was not read. */
  body_bytes: number | null;
}

/** A file that clients or runs have given; its bytes are kept apart, by `blob_key`. */
export interface FilesTable {
  id: string;
  organization_id: string;
  name: string;
  /** Judged by its bytes. */
  media_type: string;
  bytes: number;
  /** Hex. */
  sha256: string;
  blob_key: string;
  /** Null for a file of the organization itself. */
  user_id: string | null;
  /** The job whose run made it. */
  job_id: string | null;
  /** Where the platform fetched it from. */
  source_url: string | null;
  /** Days that it is kept after it was given or used last; null for as many as every file. */
  retention_days: Generated<number | null>;
  /** Tokens that a PDF counts in a call, 0 for one that cannot be read; null before it was read for one. */
  tokens: Generated<number | null>;
  created_at: number;
  expires_at: number;
}

/** Bytes that files of an organization share. */
export interface FileBlobsTable {
  organization_id: string;
  sha256: string;
  blob_key: string;
  bytes: number;
}

/** Bytes that no row of `file_blobs` names, to be removed from `due_at` on. */
export interface FileGarbageTable {
  blob_key: string;
  due_at: number;
}

/** The files of an organization, and their bytes together. */
export interface FileTotalsTable {
  organization_id: string;
  files: number;
  bytes: number;
}

export const promptStates = ['kept', 'too_large', 'cap_reached', 'not_sent', 'expired'] as const;
export type PromptState = (typeof promptStates)[number];

/** What a call of a model was sent, kept by setting (`src/core/journal/prompts`). */
export interface PromptsTable {
  job_id: string;
  /** The step of the call. */
  n: number;
  organization_id: string;
  generation: string;
  /** 0 for a summary. */
  turn: number;
  state: PromptState;
  /** UTF-8 bytes of what was sent, without files. */
  bytes: number;
  /** UTF-8 bytes of `body`. */
  kept_bytes: number;
  /** The first prompt of those that go on from one another up to this one. */
  chain_from: number;
  /** JSON: what is new in it, and where the rest is; null unless it is kept. */
  body: string | null;
  created_at: number;
}

/** The bytes of the kept prompts of an organization. */
export interface PromptTotalsTable {
  organization_id: string;
  bytes: number;
}

/** An organization's own settings for prompts; null follows the platform. */
export interface PromptSettingsTable {
  organization_id: string;
  keep: 'off' | 'agents' | 'all' | null;
  retention_days: number | null;
  max_mb: number | null;
}

export interface Tables {
  prompts: PromptsTable;
  prompt_totals: PromptTotalsTable;
  prompt_settings: PromptSettingsTable;
  files: FilesTable;
  file_blobs: FileBlobsTable;
  file_garbage: FileGarbageTable;
  file_totals: FileTotalsTable;
  batches: BatchesTable;
  organizations: OrganizationsTable;
  agent_versions: AgentVersionsTable;
  removed_agents: RemovedAgentsTable;
  api_keys: ApiKeysTable;
  console_secrets: ConsoleSecretsTable;
  ended_sessions: EndedSessionsTable;
  write_probes: WriteProbesTable;
  skills: SkillsTable;
  remote_sources: RemoteSourcesTable;
  remote_skill_versions: RemoteSkillVersionsTable;
  remote_accounts: RemoteAccountsTable;
  remote_authorizations: RemoteAuthorizationsTable;
  remote_oauth_clients: RemoteOauthClientsTable;
  processes: ProcessesTable;
  agents: AgentsTable;
  jobs: JobsTable;
  job_counts: JobCountsTable;
  job_events: JobEventsTable;
  conversations: ConversationsTable;
  conversation_counts: ConversationCountsTable;
  messages: MessagesTable;
  job_steps: JobStepsTable;
  family_cancellations: FamilyCancellationsTable;
  gates: GatesTable;
  gate_settings: GateSettingsTable;
  places: PlacesTable;
  rate_starts: RateStartsTable;
  timed_pauses: TimedPausesTable;
  provider_paces: ProviderPacesTable;
  event_waits: EventWaitsTable;
  event_positions: EventPositionsTable;
  received_events: ReceivedEventsTable;
  event_totals: EventTotalsTable;
  event_idempotency_keys: EventIdempotencyKeysTable;
  approvals: ApprovalsTable;
  token_usage: TokenUsageTable;
  token_budgets: TokenBudgetsTable;
  embedding_calls: EmbeddingCallsTable;
  credentials: CredentialsTable;
  skill_settings: SkillSettingsTable;
  events: EventsTable;
  user_erasures: UserErasuresTable;
  idempotency_keys: IdempotencyKeysTable;
  job_keys: JobKeysTable;
  memory_owners: MemoryOwnersTable;
  memory_tags: MemoryTagsTable;
  profiles: ProfilesTable;
  memories: MemoriesTable;
  memory_index: MemoryIndexTable;
  embedding_models: EmbeddingModelsTable;
  memory_vectors: MemoryVectorsTable;
  memory_codes: MemoryCodesTable;
  scheduled_jobs: ScheduledJobsTable;
  scheduled_job_last_runs: ScheduledJobLastRunsTable;
  scheduled_runs: ScheduledRunsTable;
  event_cursors: EventCursorsTable;
  webhooks: WebhooksTable;
  webhook_listeners: WebhookListenersTable;
  webhook_deliveries: WebhookDeliveriesTable;
  webhook_attempts: WebhookAttemptsTable;
  webhook_delivery_counts: WebhookDeliveryCountsTable;
  agent_triggers: AgentTriggersTable;
  run_statistics: RunStatisticsTable;
  skill_key_runs: SkillKeyRunsTable;
  trigger_calls: TriggerCallsTable;
}
