/**
 * The requests of a run to models, in its journal: each call of a model is recorded before it is made and
 * after it has ended, each tool before it runs and with its result. A step, its message, its tokens and their
 * charge to budgets change in one transaction, and only while the claim holds the job. A claim that lost its
 * lease records nothing. A repeated attempt continues from what is on record. It has more than 300 lines because
 * the beginning and the end of each step have to be read together.
 */

import type { Transaction } from '../../adapters/database/database.ts';
import type { AssistantMessage, GivenFile, ToolMessage } from '../../adapters/models/model.ts';
import { type Price, priceBodyOf } from '../../adapters/models/price.ts';
import type { Prices } from '../../adapters/models/prices.ts';
import { cutToBytes } from '../../kernel/cut-text.ts';
import { newId } from '../../kernel/ids.ts';
import { lazily } from '../../kernel/lazy.ts';
import type { InstructionValues } from '../agents/instruction-values.ts';
import type { RuleDecision } from '../agents/tool-rules.ts';
import type { Context } from '../context/context.ts';
import type { Conversations } from '../conversations/conversations.ts';
import { addDialogue, addMessages } from '../conversations/record.ts';
import { maySummarize, noteFailedSummary, noteSummary } from '../conversations/summary-tries.ts';
import type { RunMessage } from '../jobs/settle-effects.ts';
import { listJobsAbove } from '../journal/agent-tree-queries.ts';
import { costsOf, countsOf } from '../journal/call-costs.ts';
import type { OpenClaim } from '../journal/claim-writes.ts';
import { nextStep, type StepFailure } from '../journal/journal-steps.ts';
import { countedOwnersOf, ownersOf, payersOf } from '../journal/payers.ts';
import { KeptPrompts } from '../journal/prompts/kept-prompts.ts';
import type { PromptSettings } from '../journal/prompts/prompt-settings.ts';
import { findRecord, type StepPlace } from '../journal/records.ts';
import {
  endSteps,
  findLastMessageOfTurns,
  insertSteps,
  listActiveSteps,
  listStepsOfGeneration,
  recordAgent,
  recordRule,
  restartStep,
  startApprovedTool,
} from '../journal/step-queries.ts';
import { activeStep, endedStep, type JournalJob, type StepError } from '../journal/step-rows.ts';
import type { MemoryChange } from '../memories/run-memory.ts';
import type { ReservationNeed } from '../usage/reservation-rule.ts';
import { charge, reserve, type UsageOwner } from '../usage/reservations.ts';
import { placeInTree, type TreePlace, treeState } from './agent-tree.ts';
import type { Summary } from './compaction-plan.ts';
import { type Held, heldContent, marked } from './guard-records.ts';
import {
  type CallCost,
  nothingRecorded,
  type PlannedTool,
  type RecordedGeneration,
  readGeneration,
} from './recorded-generation.ts';
import type { CallNeed } from './run-bounds.ts';
import type { PromptOf } from './sent-calls.ts';
import { steeredAfter } from './steered.ts';

/** UTF-8 bytes of a message's content. */
const contentMax = 65_536;

/** A call of a model that has begun. */
export interface BegunCall extends Pick<CallRequest, 'generation' | 'turn' | 'model' | 'expected'> {
  readonly n: number;
  readonly startedAt: number;
  readonly reserved: number;
  /** Nano-dollars; 0 without a price. */
  readonly reservedCost: number;
  /** The price when it began; null where it is unknown. */
  readonly price: Price | null;
  /** Most tokens that its answer may have. */
  readonly output: number;
}

/** Every other kind than `begun` says in a sentence why the call was not started. */
export type Beginning =
  | { readonly kind: 'begun'; readonly call: BegunCall }
  | { readonly kind: 'wait' | 'exceeded' | 'unpriced'; readonly message: string };

/** How a call of a model ended. */
export interface CallEnd extends CallCost {
  readonly status: 'completed' | 'failed' | 'interrupted';
  readonly error: StepError | null;
  /** The answer, or the part of it that had arrived; null adds no message. */
  readonly message: AssistantMessage | null;
  /** Whether later runs of the conversation see the message. */
  readonly isDialogue: boolean;
  /** Whether neither users nor later runs see it before guards have. */
  readonly isHeld?: boolean;
  /** Whether a guard has asked: then what the model says is for the guard alone. */
  readonly isOfGuard?: boolean;
  /** The tools that the model called. */
  readonly tools: readonly Omit<PlannedTool, 'n'>[];
  /** Where the answer is a summary of earlier messages; with turns it covers all messages up to the last of them. */
  readonly summary?: Pick<Summary, 'text' | 'turns' | 'through' | 'tools'>;
  /** Where a summary failed that may have been charged: the version of the agent that asked for it. */
  readonly failedSummary?: { readonly agentVersion: number };
}

export interface ToolEnd {
  readonly status: 'completed' | 'failed';
  readonly error: StepError | null;
  readonly message: ToolMessage;
  /** The content of the conversation's message. */
  readonly content: string;
  /** The whole result, where the message has only its beginning. */
  readonly whole?: string | null;
  readonly isDialogue: boolean;
  /** Whether the model does not see it before guards have. */
  readonly isHeld?: boolean;
  readonly memory: readonly MemoryChange[];
  /** Those that the skill has added to the conversation. */
  readonly messages: readonly RunMessage[];
}

/** A request to a model; `nth` is its number among equal ones. */
export interface GenerationPlace extends Pick<StepPlace, 'nth' | 'parent'> {
  readonly id: string;
}

/** A call of a model that is to begin. */
export interface CallRequest extends CallNeed, Pick<ReservationNeed, 'least' | 'enough'> {
  readonly generation: string;
  /** The step of the part of the run that asks, null for the run itself. */
  readonly parent: number | null;
  readonly turn: number;
  readonly model: string;
  /** The version of the agent that asks. */
  readonly agentVersion: number;
  /** What its instructions are filled with; null for nothing. */
  readonly values?: InstructionValues | null;
  /** Whether it may give tasks to other agents. */
  readonly mayDelegate?: boolean;
  /** Tokens that its prompt most likely has; `prompt` is the most that it may have. */
  readonly expected: number;
  /** How it gives the model the files of its messages; null without any. */
  readonly files?: readonly GivenFile[] | null;
  /**
   * What is sent for an answer of so many tokens at most, where it is to be kept; null where no request can be made of the call.
   */
  readonly sends?: PromptOf | undefined;
}

/** What the calls of models of a process share. */
export interface GenerationParts {
  readonly context: Pick<Context, 'config' | 'database' | 'clock' | 'observers'>;
  readonly conversations: Conversations;
  readonly prices: Prices;
  readonly prompts: PromptSettings;
}

/** The generations in the journal of a claim. */
export class Generations {
  readonly parts: GenerationParts;
  readonly journal: OpenClaim;
  readonly job: JournalJob;
  /** The owners whose budgets pay for the calls of the job. */
  readonly #owners: () => Promise<UsageOwner[]>;
  /** The place of the job in its tree of agents. */
  readonly #place: () => Promise<TreePlace>;
  /** The version of the agent that this claim has recorded of the job. */
  #agentVersion: number | null = null;
  /** Generations that this claim has opened. */
  readonly #opened = new Set<string>();
  readonly #prompts: KeptPrompts;
  /** When the tools that have not ended were planned or restarted, by their steps. */
  readonly #toolStarts = new Map<number, number>();
  /** Bytes of the whole results of tools that this claim has kept. */
  keptBytes = 0;

  constructor(parts: GenerationParts, journal: OpenClaim) {
    const { job } = journal;
    const { read } = parts.context.database;
    const above = lazily(() => listJobsAbove(read, job.id));
    this.parts = parts;
    this.journal = journal;
    this.job = job;
    this.#prompts = new KeptPrompts(journal, parts.prompts);
    this.#owners = lazily(async () => ownersOf(read, job, await above()));
    this.#place = lazily(async () => placeInTree(await above()) ?? { top: job, branch: null });
  }

  /**
   * The recorded part of a generation, from earlier claims, and from this one when the request repeats
   * (an answer was corrected, a tool was restarted).
   */
  async recorded(place: GenerationPlace): Promise<RecordedGeneration> {
    const { job, journal, parts } = this;
    const { id: generation } = place;
    if (!this.#opened.has(generation)) {
      this.#opened.add(generation);
      if (job.epoch === 1) return nothingRecorded;
      const records = await journal.records();
      const known = findRecord(records, 'generate', stepOf(place));
      if (known === undefined) return nothingRecorded;
      records.pending.delete(known.n);
    }
    const rows = await listStepsOfGeneration(journal.database.read, { job_id: job.id, generation });
    if (rows.length === 0) return nothingRecorded;
    const ids = rows.flatMap(({ message_id }) => message_id ?? []);
    const data = await parts.conversations.dataOf(job.conversation_id, ids);
    const steered = await steeredAfter(journal.database.read, job, generation);
    return readGeneration(rows, data, job.attempt, steered);
  }

  /**
   * Records why a generation has failed, so that the attempt gets the same failure after a wait: with the next
   * write of the claim, because most runs fail with it and write no more, or now if the run may be unloaded first.
   */
  async failGeneration(place: GenerationPlace, failure: StepFailure): Promise<void> {
    const { job, journal } = this;
    const { key, nth: turn, ...step } = stepOf(place);
    const n = await nextStep(journal);
    const now = journal.clock.now();
    journal.failures.push({
      ...step,
      job_id: job.id,
      n,
      epoch: job.epoch,
      kind: 'generate',
      generation: key,
      turn,
      status: 'failed',
      error: JSON.stringify(failure),
      attempt: job.attempt,
      started_at: now,
      finished_at: now,
    });
    if (journal.hasWaits) await journal.write(async () => {});
  }

  async beginCall(request: CallRequest): Promise<Beginning> {
    const { job, journal, parts } = this;
    const { generation, parent, turn, model, agentVersion, prompt, expected, output } = request;
    const { least, enough, values = null, files = null, sends } = request;
    const { config } = parts.context;
    const counter = await journal.numbers();
    const owners = await this.#owners();
    const place = await this.#place();
    const isInTree = request.mayDelegate || place.branch !== null;
    const readBounds = async (tx: Transaction) =>
      isInTree ? treeState(tx, config.agentTokensMax, place) : [];
    if (sends) await this.#prompts.prepare(request);
    const now = journal.clock.now();
    const price = parts.prices.at(model, now) ?? null;
    let n: number | undefined;
    return journal.write(async (tx, isRepeat) => {
      const active = isRepeat ? await listActiveSteps(tx, { job_id: job.id }) : [];
      const begun = active.find((step) => step.n === n);
      if (begun !== undefined) {
        const { started_at: startedAt, reserved, reserved_cost: reservedCost } = begun;
        const begin = { n: begun.n, startedAt, reserved, reservedCost, output: reserved - prompt };
        const call = { generation, turn, model, expected, price, ...begin };
        return { kind: 'begun', call };
      }
      const need = { prompt, output, least, enough, model, price };
      const owning = {
        organizationId: job.organization_id,
        owners: await payersOf(tx, job, owners, now),
      };
      const reservation = await reserve(tx, { ...owning, ...need }, now, readBounds);
      if (reservation.kind !== 'granted') return reservation;
      n ??= counter.next++;
      const { reserved, reservedCost } = reservation;
      const step = {
        n,
        kind: 'model' as const,
        generation,
        parent,
        turn,
        name: model,
        reserved,
        reserved_cost: reservedCost,
        expected_prompt: expected,
        price: price === null ? null : JSON.stringify(priceBodyOf(price)),
        files: files && JSON.stringify(files),
      };
      const { attempt } = job;
      if (this.#agentVersion !== agentVersion) {
        await recordAgent(tx, job.id, agentVersion, values && JSON.stringify(values));
        tx.afterCommit(() => {
          this.#agentVersion = agentVersion;
        });
      }
      await insertSteps(tx, [activeStep(job, { ...step, attempt, started_at: now })]);
      if (sends !== undefined) {
        const body = sends?.bodyFor(reservation.output) ?? null;
        await this.#prompts.keep(tx, { n, generation, turn }, body, now);
      }
      const begin = { n, startedAt: now, reserved, reservedCost, output: reservation.output };
      const call = { generation, turn, model, expected, price, ...begin };
      return { kind: 'begun', call };
    });
  }

  /** Returns the tools that the model called, planned as steps. */
  async endCall(call: BegunCall, end: CallEnd): Promise<PlannedTool[]> {
    const { job, journal, parts } = this;
    const { generation, turn, startedAt: reservedAt, reserved, reservedCost } = call;
    const { usage, estimated, tools } = end;
    const costs = costsOf(usage, estimated, call);
    const counter = await journal.numbers();
    const planned = tools.map((tool): PlannedTool => ({ ...tool, n: counter.next++ }));
    const owners = await this.#owners();
    const id = end.message === null ? null : newId();
    const now = journal.clock.now();
    const { observers } = parts.context;
    const { n, startedAt } = call;
    const observed = { n, startedAt, tokens: usage, cost: costs.cost };
    const observe = () => observers.modelCalled(job, observed);
    for (const tool of planned) this.#toolStarts.set(tool.n, now);
    await journal.write(async (tx, isRepeat) => {
      const [ended] = await endSteps(tx, [
        {
          ...endedStep(job, call.n, end, id, now),
          ...countsOf(usage),
          cost: costs.cost,
          estimated,
          estimated_cost: costs.estimatedCost,
        },
      ]);
      if (ended === 0) {
        // The first try was committed, and its confirmation was lost.
        if (isRepeat) tx.afterCommit(observe);
        return;
      }
      if (id !== null && end.message !== null) {
        const isWhole = end.status === 'completed';
        const isHeld = end.isHeld === true;
        await addDialogue(tx, [
          {
            ...messageOf(job, id, now),
            // A guard judges; it says nothing in the conversation.
            role: end.isOfGuard ? 'system' : 'assistant',
            content: isHeld ? heldContent : cutContent(end.message.text),
            tokens: { ...usage, cost: costs.cost },
            model: call.model,
            data: isWhole ? JSON.stringify(await storedOf(tx, job, call, end)) : null,
            isDialogue: end.isDialogue && isWhole && !isHeld,
            isSummary: end.summary !== undefined,
            isUnfinished: !isWhole,
          },
        ]);
      }
      const owning = {
        organizationId: job.organization_id,
        owners: await payersOf(tx, job, owners, now),
      };
      const spent = { usage, estimated, ...costs, counted: countedOwnersOf(job) };
      await charge(tx, [{ ...owning, reservedAt, reserved, reservedCost, ...spent }]);
      tx.afterCommit(observe);
      await noteSummaryEnd(tx, job, end, now);
      if (planned.length > 0) {
        await insertSteps(
          tx,
          planned.map(({ n, call: { id: call_id }, name }) => {
            const step = {
              n,
              kind: 'tool',
              generation,
              parent: call.n,
              turn,
              name,
              call_id,
            } as const;
            return activeStep(job, { ...step, started_at: now });
          }),
        );
      }
    });
    return planned;
  }

  /** Whether the conversation may be summarized now, after summaries that failed. */
  maySummarize(agentVersion: number): Promise<boolean> {
    const { job, journal } = this;
    const of = { conversationId: job.conversation_id, agentVersion };
    return maySummarize(journal.database.read, of, journal.clock.now());
  }

  restartTool({ n }: PlannedTool): Promise<void> {
    const { job, journal } = this;
    const now = journal.clock.now();
    this.#toolStarts.set(n, now);
    return journal.write((tx) => restartStep(tx, job, n, now));
  }

  /** Starts a tool with the approval of its call, which is used up in the same commit. */
  startApproved(n: number, digest: string): Promise<void> {
    const { job, journal } = this;
    return journal.write((tx) => startApprovedTool(tx, job, { n, digest }, journal.clock.now()));
  }

  /** Records what the rules of the agent have decided about the call of a tool, before the tool starts. */
  recordDecision(n: number, decision: RuleDecision): Promise<void> {
    const { job, journal } = this;
    return journal.write((tx) => recordRule(tx, job.id, n, JSON.stringify(decision)));
  }

  /** Ends a tool. Observers are notified once its end is committed. */
  async endTool({ n, name }: PlannedTool, end: ToolEnd): Promise<void> {
    const { job, journal, parts } = this;
    const id = newId();
    const now = journal.clock.now();
    const startedAt = this.#toolStarts.get(n) ?? now;
    this.#toolStarts.delete(n);
    const observed = { n, startedAt, name, error: end.error?.code ?? null };
    const observe = () => parts.context.observers.toolEnded(job, observed);
    const memory = end.memory.length === 0 ? null : JSON.stringify(end.memory);
    const result = end.whole == null ? null : JSON.stringify(end.whole);
    await journal.write(async (tx, isRepeat) => {
      const [ended] = await endSteps(tx, [{ ...endedStep(job, n, end, id, now), memory, result }]);
      // Of a repeat: the first try was committed, and its confirmation was lost.
      if (ended === 1 || isRepeat) tx.afterCommit(observe);
      if (ended === 0) return;
      const messages = end.messages.map((one) => ({ ...messageOf(job, newId(), one.at), ...one }));
      if (messages.length > 0) await addMessages(tx, messages);
      await addDialogue(tx, [
        {
          ...messageOf(job, id, now),
          role: 'tool',
          content: cutContent(end.content),
          data: JSON.stringify(marked(end.message, end.isHeld)),
          isDialogue: end.isDialogue && !end.isHeld,
        },
      ]);
    });
  }

  /** Records the recalled memories of a prompt as a tool step before the first turn; returns the step's number. */
  async recordRecall(
    { generation, parent, name }: Pick<CallRequest, 'generation' | 'parent'> & { name: string },
    message: ToolMessage,
    content: string,
  ): Promise<number> {
    const { job, journal } = this;
    const n = await nextStep(journal);
    const id = newId();
    const now = journal.clock.now();
    const call = { n, kind: 'tool', generation, parent, turn: 0, name } as const;
    await journal.write(async (tx, isRepeat) => {
      const before = isRepeat
        ? await listStepsOfGeneration(tx, { job_id: job.id, generation })
        : [];
      if (before.some((step) => step.n === n)) return;
      await insertSteps(tx, [
        activeStep(job, { ...call, call_id: message.callId, started_at: now }),
      ]);
      await endSteps(tx, [endedStep(job, n, { status: 'completed', error: null }, id, now)]);
      const data = JSON.stringify(message);
      const entry = {
        role: 'tool',
        content: cutContent(content),
        data,
        isDialogue: false,
      } as const;
      await addDialogue(tx, [{ ...messageOf(job, id, now), ...entry }]);
    });
    return n;
  }
}

function stepOf({ id: key, parent, nth }: GenerationPlace): StepPlace {
  return { key, name: 'generate', parent, nth, digest: null };
}

/** Counts summaries that fail in a row. */
async function noteSummaryEnd(
  tx: Transaction,
  job: JournalJob,
  { summary, failedSummary }: CallEnd,
  now: number,
): Promise<void> {
  const conversationId = job.conversation_id;
  if (summary !== undefined) await noteSummary(tx, conversationId);
  else if (failedSummary !== undefined) {
    await noteFailedSummary(tx, { conversationId, ...failedSummary }, now);
  }
}

/** A message as models take it, or a summary, which names the last message that it covers. */
async function storedOf(
  tx: Transaction,
  job: JournalJob,
  { generation }: BegunCall,
  { message, summary, isHeld }: CallEnd,
): Promise<AssistantMessage | Held<AssistantMessage> | Summary | null> {
  if (summary === undefined) return message && marked(message, isHeld);
  const { turns } = summary;
  const first = { job_id: job.id, generation, turns };
  const last = turns === 0 ? undefined : await findLastMessageOfTurns(tx, first);
  return { role: 'summary', ...summary, through: last?.id ?? summary.through };
}

function messageOf(job: JournalJob, id: string, at: number) {
  return { id, conversation_id: job.conversation_id, job_id: job.id, at };
}

/** A message's content may have 64 KiB (docs/decisions/json-and-lists.md). */
export const cutContent = (text: string) => cutToBytes(text, contentMax, '\n[cut]');
