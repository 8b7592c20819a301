/**
 * Memories that form: once a conversation of an agent with `memory_formation` has been quiet, this accepts a job that reads
 * what was said since the last one and changes the memories of the conversation's user. The job is an ordinary one: it waits
 * its turn, is retried, charged to the same budgets and shown as others are. Each message is part of one job, because
 * the transaction that accepts the job moves the conversation's mark.
 */
import type { Database } from '../../adapters/database/database.ts';
import { formationOf, type MemoryFormation, profileOf } from '../../core/agents/agent-rows.ts';
import type { Context } from '../../core/context/context.ts';
import { envelopeOf } from '../../core/events/events.ts';
import { appendEvents } from '../../core/events/outbox.ts';
import type { Acceptor, WorkRequest } from '../../core/jobs/accept.ts';
import {
  type Obstacle,
  type Ready,
  readinessOf,
  type StarterSlices,
} from '../../core/jobs/readiness.ts';
import { rightsOfModel } from '../../core/memories/memory-verbs.ts';
import { formationSkill } from '../../core/skills/formation-skill.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isUnavailable, PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { priorities } from '../../kernel/priority.ts';
import {
  type DueConversation,
  listDue,
  listFormedMessages,
  moveForming,
} from './formations.store.ts';
import { type Span, spanOf } from './span.ts';

/** Conversations handled in one call, and messages read of one. */
const batchMax = 50;
const messagesMax = 100;
/** Until a conversation is tried again that cannot be read now, or whose earlier job has not ended. */
const againMs = 60_000;

export class MemoryFormations {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #slices: StarterSlices & { readonly acceptor: Acceptor };

  constructor(
    { database, clock, log }: Context,
    slices: StarterSlices & { readonly acceptor: Acceptor },
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    this.#slices = slices;
  }

  /** Accepts the jobs of conversations that have been quiet; returns of how many. */
  async run(): Promise<number> {
    const due = await listDue(this.#database.read, { now: this.#clock.now(), limit: batchMax });
    for (const conversation of due) {
      try {
        await this.#form(conversation);
      } catch (err) {
        if (isUnavailable(err)) throw err;
        if (err instanceof GoneOn) continue;
        if (err instanceof Unended) {
          await this.#move(conversation, this.#clock.now() + againMs);
          continue;
        }
        const subject = { err, conversation_id: conversation.id };
        this.#log.error(subject, 'the memories of a conversation could not be formed');
        await this.#move(conversation, this.#clock.now() + againMs);
      }
    }
    return due.length;
  }

  async #form(conversation: DueConversation): Promise<void> {
    // The end of the run that goes on sets the moment again.
    if (conversation.status === 'active') return this.#move(conversation, null);
    const agent = await this.#agentOf(conversation);
    const setting = agent && formationOf(agent);
    if (!agent || !setting) return this.#move(conversation, null);
    const messages = await listFormedMessages(this.#database.read, conversation, messagesMax);
    const span = spanOf(messages, conversation.formed_through === null);
    if (span === null) return this.#move(conversation, null);
    const { through } = span;
    const isWhole = messages.length < messagesMax && span.isWhole;
    const formsAt = isWhole ? null : this.#clock.now();
    if (span.messages.length === 0) return this.#move(conversation, formsAt, through);
    const rights = rightsOfModel(agent.memory, span.userId !== null);
    if (rights === 'off' || rights === 'read') return this.#move(conversation, null);
    const starter = {
      organization_id: conversation.organization_id,
      api_key_id: span.apiKeyId,
      agent_id: conversation.agent_id,
      ...formationSkill,
    };
    const [readiness] = await readinessOf(this.#slices, [starter]);
    if (readiness === undefined) return;
    if ('code' in readiness) return this.#refuse(conversation, span, readiness);
    const profileBytes = span.userId === null ? undefined : profileOf(agent)?.max_bytes;
    const work = workOf(conversation, span, readiness, setting, profileBytes);
    await this.#database.write(async (tx) => {
      // First, because the end of a run also locks a conversation before the counts that an acceptance changes.
      if (!(await moveForming(tx, conversation, { formsAt, through }))) throw new GoneOn();
      const [acceptance] = await this.#slices.acceptor.acceptWithin(tx, [work]);
      if (acceptance?.kind !== 'accepted') throw new Unended();
    });
  }

  async #agentOf({ organization_id, agent_id, created_at }: DueConversation) {
    try {
      return await this.#slices.agents.findSince(organization_id, agent_id, created_at);
    } catch (error) {
      if (error instanceof PlatformError && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  /** A job that could not be started: of a paused agent it is tried again, else what was said is passed over. */
  async #refuse(conversation: DueConversation, { through }: Span, { code, reason }: Obstacle) {
    const now = this.#clock.now();
    if (code === 'agent_paused') return this.#move(conversation, now + againMs);
    const message = `No memories were formed of the conversation ${conversation.id}: ${reason}.`;
    await this.#database.write(async (tx) => {
      if (!(await moveForming(tx, conversation, { formsAt: null, through }))) return;
      const data = { code, message, job_id: null };
      const event = { ...envelopeOf(conversation), type: 'agent.error', data } as const;
      await appendEvents(tx, [event], now);
    });
  }

  async #move(
    conversation: DueConversation,
    formsAt: number | null,
    through: string | null = conversation.formed_through,
  ): Promise<void> {
    await this.#database.write((tx) => moveForming(tx, conversation, { formsAt, through }));
  }
}

/** Another process was first, or a run has ended in the conversation meanwhile: the job is not accepted. */
class GoneOn extends Error {}

/** The job before it of the conversation has not ended: the mark stays. */
class Unended extends Error {}

function workOf(
  { id, organization_id, agent_id }: DueConversation,
  { messages, apiKeyId, userId, userName }: Span,
  { skill }: Ready,
  { max_memories }: MemoryFormation,
  profileBytes: number | undefined,
): WorkRequest {
  const input = {
    conversation_id: id,
    messages,
    whose: userId === null ? 'agent' : 'user',
    ...(max_memories !== undefined && { max_memories }),
    ...(profileBytes !== undefined && { profile_bytes: profileBytes }),
  };
  return {
    organizationId: organization_id,
    apiKeyId,
    agentId: agent_id,
    userId: userId ?? userName,
    isForUser: userId !== null,
    triggerType: 'api',
    skill,
    maxAttempts: skill.maxAttempts,
    // Behind the jobs that clients wait for.
    priority: priorities.indexOf('low'),
    input: JSON.stringify(input),
    retryOf: null,
    // One at a time for each conversation.
    jobKey: { key: `memories of ${id}`, mode: 'skip' },
  };
}
