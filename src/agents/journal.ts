/**
 * The journal of a run: each call of a model is recorded before it is made and after it has ended, each
 * tool before it runs and with its result. A step, its message, its tokens and their charge to budgets
 * change in one transaction, and only while the claim holds the job. A claim that lost its lease records
 * nothing. A repeated attempt continues from the journal.
 */
import type { Conversations } from '../conversations/conversations.ts';
import { addDialogue, addMessages } from '../conversations/record.ts';
import type { Database, Handle, Transaction } from '../database/database.ts';
import type { MessageRole } from '../database/tables.ts';
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import { lazily } from '../kernel/lazy.ts';
import { retryWhileUnavailable } from '../kernel/retry-while-unavailable.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import type { AssistantMessage, ToolCall, ToolMessage, Usage } from '../models/model.ts';
import type { Reservations, UsageOwner } from '../usage/reservations.ts';
import { type EndedClaim, endAbandonedSteps } from './abandoned-steps.ts';
import { createStepJournal, type StepJournal } from './journal-steps.ts';
import {
  nothingRecorded,
  type PlannedTool,
  type RecordedGeneration,
  readGeneration,
} from './recorded-generation.ts';
import { activeStep, endedStep, type StepError, type ThinkingJob } from './step-rows.ts';
import {
  endSteps,
  findActiveStep,
  insertSteps,
  lastStepNumber,
  listStepsOfGeneration,
  restartStep,
} from './steps.store.ts';

/** The delay between tries to write while the database is unavailable, and their number. */
const retryMs = 500;
const triesMax = 120;
/** UTF-8 bytes of a message's content. */
const contentMax = 65_536;

/** A call of a model that has begun. */
export interface BegunCall {
  readonly n: number;
  readonly startedAt: number;
  readonly reserved: number;
  /** Most tokens that its answer may have. */
  readonly output: number;
}

export type Beginning =
  | { readonly kind: 'begun'; readonly call: BegunCall }
  | { readonly kind: 'wait'; readonly message: string }
  | { readonly kind: 'exceeded'; readonly message: string };

/** How a call of a model ended. */
export interface CallEnd {
  readonly generation: string;
  readonly turn: number;
  readonly status: 'completed' | 'failed' | 'interrupted';
  readonly error: StepError | null;
  /** The answer, or the part of it that had arrived; null adds no message. */
  readonly message: AssistantMessage | null;
  /** Whether later runs of the conversation see the message. */
  readonly isDialogue: boolean;
  readonly usage: Usage;
  /** Tokens in place of counts that were not reported. */
  readonly estimated: number;
  /** The tools that the model called, with their names on record. */
  readonly tools: readonly { readonly call: ToolCall; readonly name: string }[];
}

/** A message that a tool added to the conversation. */
export interface SaidMessage {
  readonly role: MessageRole;
  readonly content: string;
  readonly at: number;
}

export interface ToolEnd {
  readonly status: 'completed' | 'failed';
  readonly error: StepError | null;
  readonly message: ToolMessage;
  /** The content of the conversation's message. */
  readonly content: string;
  readonly isDialogue: boolean;
  readonly memory: readonly MemoryChange[];
  readonly said: readonly SaidMessage[];
}

/** The claim no longer holds its job, so it can record nothing. */
export class LeaseLostError extends Error {
  constructor() {
    super('the job was given to another worker');
    this.name = 'LeaseLostError';
  }
}

export interface Journal extends StepJournal {
  /**
   * The recorded part of a generation, from earlier claims, and from this one when the request repeats
   * (an answer was corrected, a tool was restarted). `model` is the model that continues.
   */
  recorded(generation: string, model: string): Promise<RecordedGeneration>;
  beginCall(wanted: {
    generation: string;
    /** The step of the part of the run that asks, null for the run itself. */
    parent: number | null;
    turn: number;
    model: string;
    /** Estimated tokens. */
    prompt: number;
    output: number;
  }): Promise<Beginning>;
  /** Returns the tools that the model called, planned as steps. */
  endCall(call: BegunCall, end: CallEnd): Promise<PlannedTool[]>;
  restartTool(tool: PlannedTool): Promise<void>;
  endTool(tool: PlannedTool, end: ToolEnd): Promise<void>;
}

export interface Journals {
  /** The journal of one claim of a job. */
  open(job: ThinkingJob): Journal;
  /** Ends the abandoned steps of claims, in the transaction that ends the claims. */
  endAbandonedSteps(tx: Transaction, claims: readonly EndedClaim[]): Promise<void>;
}

export function createJournals(parts: {
  database: Database;
  conversations: Pick<Conversations, 'dataOf'>;
  reservations: Reservations;
  clock: Clock;
  /** Whether the claim still holds its job. If so, it does until the transaction ends. */
  isHeld(tx: Transaction, job: ThinkingJob): Promise<boolean>;
  /** The scheduled job that a job is a run of. */
  scheduledJobOf(db: Handle, jobId: string): Promise<string | undefined>;
  /** Called with the reported usage of a call, after the commit. */
  observe?(job: ThinkingJob, usage: Usage): void;
}): Journals {
  const { database, conversations, reservations, clock, isHeld, scheduledJobOf, observe } = parts;

  async function ownersOf(db: Handle, job: ThinkingJob): Promise<UsageOwner[]> {
    const owners: UsageOwner[] = [
      { kind: 'agent', id: job.agent_id },
      { kind: 'api_key', id: job.api_key_id },
    ];
    if (job.trigger_type !== 'scheduled') return owners;
    const id = await scheduledJobOf(db, job.id);
    return id === undefined ? owners : [...owners, { kind: 'scheduled_job', id }];
  }

  /**
   * Writes while the claim holds the job, and retries while the database is unavailable. A connection
   * may break after the commit and before its confirmation, so a repeated unit checks for its own rows.
   */
  async function write<T>(
    job: ThinkingJob,
    unit: (tx: Transaction, isRepeat: boolean) => Promise<T>,
  ): Promise<T> {
    const result = await retryWhileUnavailable(
      (tries) =>
        database.write(async (tx) =>
          (await isHeld(tx, job)) ? { value: await unit(tx, tries > 1) } : null,
        ),
      retryMs,
      (tries) => tries < triesMax,
    );
    if (result === null) throw new LeaseLostError();
    return result.value;
  }

  function open(job: ThinkingJob): Journal {
    const usageOwners = lazily(() => ownersOf(database.read, job));
    /** Generations that this claim has opened. */
    const opened = new Set<string>();
    const numbers = lazily(async () => ({
      next: 1 + (job.epoch === 1 ? 0 : await lastStepNumber(database.read, job.id)),
    }));

    async function nextNumber(): Promise<number> {
      const counter = await numbers();
      return counter.next++;
    }

    const message = (id: string, at: number) => ({
      id,
      conversation_id: job.conversation_id,
      job_id: job.id,
      at,
    });

    return {
      ...createStepJournal({ job, clock, write: (unit) => write(job, unit), numbers }),

      async recorded(generation, model) {
        const isNew = job.epoch === 1 && !opened.has(generation);
        opened.add(generation);
        if (isNew) return nothingRecorded;
        const rows = await listStepsOfGeneration(database.read, job.id, generation);
        if (rows.length === 0) return nothingRecorded;
        const ids = rows.flatMap(({ message_id }) => message_id ?? []);
        return readGeneration(rows, await conversations.dataOf(job.conversation_id, ids), model);
      },

      async beginCall({ generation, parent, turn, model, prompt, output }) {
        const counter = await numbers();
        const owning = { organizationId: job.organization_id, owners: await usageOwners() };
        const now = clock.now();
        let n: number | undefined;
        return write(job, async (tx, isRepeat) => {
          const begun =
            isRepeat && n !== undefined ? await findActiveStep(tx, job.id, n) : undefined;
          if (begun !== undefined) {
            const { started_at: startedAt, reserved } = begun;
            const call = { n: begun.n, startedAt, reserved, output: reserved - prompt };
            return { kind: 'begun', call };
          }
          const reservation = await reservations.reserve(tx, { ...owning, prompt, output }, now);
          if (reservation.kind !== 'granted') return reservation;
          n ??= counter.next++;
          const { reserved } = reservation;
          await insertSteps(tx, [
            {
              ...activeStep(job, n, { generation, parent, turn, name: model, now }),
              kind: 'model',
              call_id: null,
              reserved,
            },
          ]);
          return {
            kind: 'begun',
            call: { n, startedAt: now, reserved, output: reservation.output },
          };
        });
      },

      async endCall(call, end) {
        const { generation, turn, usage, estimated, tools } = end;
        const planned: PlannedTool[] = [];
        for (const tool of tools) planned.push({ ...tool, n: await nextNumber() });
        const owning = { organizationId: job.organization_id, owners: await usageOwners() };
        const id = end.message === null ? null : newId();
        const now = clock.now();
        await write(job, async (tx) => {
          const [ended] = await endSteps(tx, [
            {
              ...endedStep(job, call.n, end, id, now),
              prompt_tokens: usage.prompt,
              completion_tokens: usage.completion,
              estimated,
            },
          ]);
          if (ended === 0) return;
          if (id !== null && end.message !== null) {
            const isWhole = end.status === 'completed';
            await addDialogue(tx, [
              {
                ...message(id, now),
                role: 'assistant',
                content: cutToBytes(end.message.text),
                tokens: usage,
                data: isWhole ? JSON.stringify(end.message) : null,
                isDialogue: end.isDialogue && isWhole,
              },
            ]);
          }
          const { startedAt: reservedAt, reserved } = call;
          await reservations.charge(tx, [{ ...owning, reservedAt, reserved, usage, estimated }]);
          if (observe !== undefined) tx.afterCommit(() => observe(job, usage));
          if (planned.length > 0) {
            await insertSteps(
              tx,
              planned.map(({ n, call: { id: call_id }, name }) => ({
                ...activeStep(job, n, { generation, parent: call.n, turn, name, now }),
                kind: 'tool',
                call_id,
                reserved: 0,
              })),
            );
          }
        });
        return planned;
      },

      restartTool: ({ n }) =>
        write(job, (tx) =>
          restartStep(tx, { job_id: job.id, n, epoch: job.epoch, now: clock.now() }),
        ),

      async endTool({ n }, end) {
        const id = newId();
        const now = clock.now();
        const memory = end.memory.length === 0 ? null : JSON.stringify(end.memory);
        await write(job, async (tx) => {
          const [ended] = await endSteps(tx, [{ ...endedStep(job, n, end, id, now), memory }]);
          if (ended === 0) return;
          const said = end.said.map((one) => ({ ...message(newId(), one.at), ...one }));
          if (said.length > 0) await addMessages(tx, said);
          await addDialogue(tx, [
            {
              ...message(id, now),
              role: 'tool',
              content: cutToBytes(end.content),
              data: JSON.stringify(end.message),
              isDialogue: end.isDialogue,
            },
          ]);
        });
      },
    };
  }

  return {
    open,
    endAbandonedSteps: (tx, claims) =>
      endAbandonedSteps({ reservations, clock, ownersOf }, tx, claims),
  };
}

/** A message's content may have 64 KiB (docs/decisions/json-and-lists.md). */
function cutToBytes(text: string): string {
  if (Buffer.byteLength(text) <= contentMax) return text;
  const note = '\n[cut]';
  const bytes = Buffer.from(text);
  let end = contentMax - note.length;
  // Every byte of a character but its first begins with the bits 10.
  while ((bytes.readUInt8(end) & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}${note}`;
}
