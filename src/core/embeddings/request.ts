/** One request for vectors: within the budget of the agent, counted for agent and model. Logs each kind of failure once. */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Database } from '../../adapters/database/database.ts';
import type { Embeddings } from '../../adapters/models/embeddings.ts';
import { ModelError, type ModelFault, type Usage } from '../../adapters/models/model.ts';
import { costOf } from '../../adapters/models/price.ts';
import type { Prices } from '../../adapters/models/prices.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Context } from '../context/context.ts';
import type { Credentials } from '../credentials/credentials.ts';
import { ProviderBusyError } from '../paces/busy-error.ts';
import { type PacedProvider, pacedProviderOf } from '../paces/paced-provider.ts';
import type { ProviderPaces } from '../paces/provider-paces.ts';
import { endCall, type OpenCall, openCall } from '../usage/embedding-calls.ts';

/** Timeouts of requests for queries and for memories, and how long these wait at most for the pace of the provider. */
const timeouts = { question: 2_000, memory: 30_000 };
const waits = { question: 1_000, memory: 3_000 };
/** The most failures that are remembered as logged. */
const reportedMax = 10_000;

/** Another failure may be one of the texts, or of a short timeout. */
const isOfProvider = ({ isRateLimited, retryAfterMs, wasLost, isDown }: ModelError) =>
  isRateLimited || retryAfterMs !== null || wasLost || isDown;

/** The agent that the texts belong to, which is charged. */
export interface Owning {
  readonly organizationId: string;
  readonly agentId: string;
}

type Purpose = 'question' | 'memory';

/** The outcome of a request, for metrics. */
export interface EmbeddingEvent {
  readonly purpose: Purpose;
  readonly outcome: 'answered' | 'budget' | ModelFault;
  readonly usage: Usage | null;
  readonly cost: number | null;
}

export const agentKey = ({ organizationId, agentId }: Owning) => `${organizationId}/${agentId}`;

/** Bytes of a token, on average. */
const tokenBytes = 4;
/** The share of a budget's rest that a request for several texts may reserve, so that runs of the agent can go on. */
const textsShare = 0.1;

/** A model, the provider that serves it, and what it costs. */
export interface EmbeddingService {
  readonly name: string;
  readonly embeddings: Embeddings;
  /** How organizations reach the provider. */
  readonly credentials: Credentials;
  readonly paces: ProviderPaces;
  readonly prices: Prices;
}

export class EmbeddingRequests {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly model: EmbeddingService;
  readonly observe: (event: EmbeddingEvent) => void;
  readonly #stopping = new AbortController();
  /** Failures in the log that are not resolved yet. */
  readonly #reported = new Set<string>();

  constructor(
    { database, clock, log }: Context,
    model: EmbeddingService,
    observe: (event: EmbeddingEvent) => void,
  ) {
    this.database = database;
    this.clock = clock;
    this.log = log;
    this.model = model;
    this.observe = observe;
  }

  /** One request; null where the budget of the agent has no room for it. */
  async make(
    owning: Owning,
    given: readonly string[],
    purpose: Purpose,
  ): Promise<readonly Float32Array[] | null> {
    const { model } = this;
    const call = await this.#open(owning, given, purpose);
    if (call === null) return null;
    const { organizationId } = owning;
    try {
      const settings = await model.credentials.settingsForModel(organizationId, model.name);
      const provider = pacedProviderOf(model.name, settings, organizationId);
      await this.#awaitMoment(provider, call.expected, purpose);
      const embed = () =>
        model.embeddings.embed({
          model: model.name,
          settings,
          texts: given,
          timeoutMs: timeouts[purpose],
          signal: this.#stopping.signal,
        });
      const { vectors, usage } = await model.paces.call(
        provider,
        call.expected,
        embed,
        isOfProvider,
      );
      await this.#end(call, usage, purpose);
      const price = model.prices.at(model.name, call.reserved_at);
      const cost = price === undefined ? null : costOf(usage, price);
      this.observe({ purpose, outcome: 'answered', usage, cost });
      return vectors;
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      const { usage, fault: outcome } = error;
      await this.#end(call, usage, purpose);
      this.observe({ purpose, outcome, usage: null, cost: null });
      throw error;
    }
  }

  /** Waits for the moment of a request. Rejects with a ProviderBusyError where that is not near. */
  async #awaitMoment(provider: PacedProvider, tokens: number, purpose: Purpose): Promise<void> {
    const now = this.clock.now();
    const until = now + waits[purpose];
    // Before the other calls of its organization: there are few, and a client may wait for it.
    const asking = { tokens, until, hasWaited: true };
    const { kind, at, reason } = await this.model.paces.momentFor(provider, asking);
    if (reason === null) return;
    if (kind !== 'moment') {
      const message = `The provider ${provider.provider} is not called for vectors before ${timestamp(at)} (${reason})`;
      throw new ProviderBusyError(message, reason, at - now, false);
    }
    const { signal } = this.#stopping;
    await elapsed(at - now, undefined, { signal }).catch(() => {
      throw new ModelError('aborted', 'The platform stops');
    });
  }

  /** Reserves the tokens of a request; null if the budget has too few. */
  async #open(
    owning: Owning,
    given: readonly string[],
    purpose: Purpose,
  ): Promise<OpenCall | null> {
    const { clock, database, model } = this;
    const bytes = given.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    const opening = await openCall(
      { database, clock },
      {
        ...owning,
        model: model.name,
        price: model.prices.at(model.name, clock.now()) ?? null,
        // No tokenizer makes more tokens of a text than it has bytes.
        most: bytes,
        expected: Math.ceil(bytes / tokenBytes),
        share: given.length > 1 ? textsShare : 1,
      },
    ).catch(this.#toleratedForQueries(purpose, 'a question is not asked'));
    if (opening === undefined) return null;
    const key = `budget ${agentKey(owning)}`;
    if (opening.kind === 'open') {
      this.logRecovery(key, 'the budget of an agent has room for vectors again');
      return opening.call;
    }
    // Fewer texts may have room.
    if (given.length > 1) return null;
    this.observe({ purpose, outcome: 'budget', usage: null, cost: null });
    const words =
      'the budget of an agent has no room for vectors: its memories are searched by words';
    const { organizationId: organization_id, agentId: agent_id } = owning;
    this.logFailureOnce(key, { organization_id, agent_id, reason: opening.message }, words);
    return null;
  }

  /** Counts a call for its agent and for the model. */
  async #end(call: OpenCall, usage: Usage, purpose: Purpose): Promise<void> {
    const failed = this.#toleratedForQueries(purpose, 'the tokens of a question were not counted');
    await endCall(this, call, usage).catch(failed);
  }

  /** Handles a failed write: a query logs it and continues, because a search must not fail for it. */
  #toleratedForQueries(purpose: Purpose, words: string) {
    return (error: unknown) => {
      if (purpose === 'memory') throw error;
      this.logFailureOnce(words, { err: error }, words);
    };
  }

  logFailureOnce(key: string, more: object, words: string): void {
    if (this.#reported.has(key)) return;
    if (this.#reported.size >= reportedMax) this.#reported.clear();
    this.#reported.add(key);
    this.log.warn(more, words);
  }

  logRecovery(key: string, words: string): void {
    if (this.#reported.delete(key)) this.log.info(words);
  }

  /** Ends the calls under way. */
  stop(): void {
    this.#stopping.abort();
  }
}
