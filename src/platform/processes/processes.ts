/**
 * Membership of a cluster: every few seconds each process records a heartbeat with its roles and the
 * skills that it has loaded. A process whose last heartbeat is too old counts as gone.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { ProcessesTable } from '../../adapters/database/tables.ts';
import { bind } from '../../kernel/bind.ts';
import { type Clock, timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import {
  findProcesses,
  forgetProcess,
  forgetProcessesBefore,
  recordProcess,
} from './processes.store.ts';

/** Time between two heartbeats. */
export const beatEveryMs = 3_000;
/** Age of the last heartbeat at which a process counts as gone: a few beats, and room for a slow database. */
const goneAfterMs = 15_000;
/** Rows of processes that ended without `leave` are kept for so long. */
const forgottenAfterMs = 60 * 60 * 1000;

/** A process as the API shows it. */
export type LiveProcess = ReturnType<typeof processView>;

export type Processes = ReturnType<typeof createProcesses>;

export interface ProcessesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly facts: ProcessFacts & {
    /** What this process announces that it can do. */
    readonly capabilities: readonly string[];
  };
}

/** What a process says of itself. */
export interface ProcessFacts {
  readonly roles: readonly string[];
  readonly version: string;
  /** Those that it has loaded, which change when it reloads them. */
  skills(): readonly string[];
}

/** What the last heartbeat read of a live process. */
type Member = ReturnType<typeof memberOf>;

interface MembershipState extends ProcessesDeps {
  readonly id: string;
  readonly startedAt: number;
  lastClaimAt: number;
  lastJobAt: number;
  /** Monotonic time of this process's last heartbeat: the age of `members`. */
  lastBeat: number;
  members: readonly Member[];
}

export function createProcesses(deps: ProcessesDeps) {
  const state: MembershipState = {
    ...deps,
    id: newId(),
    startedAt: deps.clock.now(),
    lastClaimAt: 0,
    lastJobAt: 0,
    lastBeat: Number.NEGATIVE_INFINITY,
    members: [],
  };
  const noting = { beat, claimed, begun, leave, forgetGone };
  const verbs = bind(state, { ...noting, live, skills, canAll, lastClaimAt, list });
  return { id: state.id, ...verbs };
}

/** Records a heartbeat of this process, and reads those of the others. */
async function beat(state: MembershipState): Promise<void> {
  const { database, clock } = state;
  const now = clock.now();
  await database.write((tx) => recordProcess(tx, { ...rowOf(state), seen_at: now }));
  const rows = await findProcesses(database.read, { since: now - goneAfterMs });
  state.lastBeat = clock.monotonic();
  state.members = rows.map(memberOf);
}

function rowOf(state: MembershipState) {
  const { facts } = state;
  return {
    id: state.id,
    roles: JSON.stringify(facts.roles),
    version: facts.version,
    skills: JSON.stringify(facts.skills()),
    capabilities: JSON.stringify(facts.capabilities),
    started_at: state.startedAt,
    last_claim_at: state.lastClaimAt,
    last_job_at: state.lastJobAt,
  };
}

function memberOf(row: ProcessesTable) {
  return {
    roles: JSON.parse(row.roles) as string[],
    skills: JSON.parse(row.skills) as string[],
    capabilities: JSON.parse(row.capabilities) as string[],
    lastClaimAt: row.last_claim_at,
  };
}

/** Notes that this process has claimed a job from a queue. */
function claimed(state: MembershipState): void {
  state.lastClaimAt = state.clock.now();
}

/** Notes that this process has begun a job, from a queue or as it accepted the job. */
function begun(state: MembershipState): void {
  state.lastJobAt = state.clock.now();
}

/** How many live processes have a role; 0 when this process could not read them for a while. */
function live(state: MembershipState, role: string): number {
  if (!isFresh(state)) return 0;
  return state.members.filter((member) => member.roles.includes(role)).length;
}

/**
 * Whether every live process announces a capability; false when this process could not read them for a
 * while. A process of a version that does not know the capability announces nothing.
 */
function canAll(state: MembershipState, capability: string): boolean {
  if (!isFresh(state)) return false;
  return state.members.every((member) => member.capabilities.includes(capability));
}

/** Whether this process has read the others recently enough to know them. */
function isFresh(state: MembershipState): boolean {
  return state.clock.monotonic() - state.lastBeat < goneAfterMs;
}

/** Skills that any live process has loaded. */
function skills({ members }: MembershipState): ReadonlySet<string> {
  return new Set(members.flatMap((member) => member.skills));
}

/** When any live process last claimed a job, as of the last heartbeat. */
function lastClaimAt(state: MembershipState): number {
  return Math.max(state.lastClaimAt, ...state.members.map((member) => member.lastClaimAt));
}

/** The live processes, read from the database now, the oldest first. */
async function list({ database, clock }: MembershipState): Promise<LiveProcess[]> {
  const rows = await findProcesses(database.read, { since: clock.now() - goneAfterMs });
  return rows
    .toSorted((a, b) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1))
    .map((row) => processView({ ...row, ...memberOf(row) }));
}

/** Deletes this process's row, before the process ends. */
async function leave({ database, id }: MembershipState): Promise<void> {
  await database.write((tx) => forgetProcess(tx, id));
}

/** Deletes the rows of processes that ended without `leave`. */
async function forgetGone({ database, clock }: MembershipState): Promise<void> {
  await database.write((tx) => forgetProcessesBefore(tx, clock.now() - forgottenAfterMs));
}

type ShownColumns = 'id' | 'version' | 'started_at' | 'seen_at' | 'last_claim_at' | 'last_job_at';

/** `last_claim_at` and `last_job_at` are 0 before the first. */
export function processView(
  row: Pick<ProcessesTable, ShownColumns> &
    Pick<ProcessFacts, 'roles'> & { readonly skills: readonly string[] },
) {
  return {
    id: row.id,
    roles: row.roles.toSorted(),
    version: row.version,
    skills: row.skills.toSorted(),
    started_at: timestamp(row.started_at),
    heard_at: timestamp(row.seen_at),
    last_claim_at: timestampOrNull(row.last_claim_at || null),
    last_job_at: timestampOrNull(row.last_job_at || null),
  };
}
