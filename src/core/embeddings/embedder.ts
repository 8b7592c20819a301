/**
 * Makes vectors of queries and memories with the model of `EMBEDDING_MODEL`, within the budget of the agent and with the
 * credentials of its organization. A query has a short deadline and no retry; memories wait and are retried. Failures of
 * the provider are results, not errors.
 */
import { TextsRefusedError } from '../../adapters/models/embeddings.ts';
import { ModelError } from '../../adapters/models/model.ts';
import { type Backoff, delayAfter } from '../../kernel/backoff.ts';
import type { Clock } from '../../kernel/clock.ts';
import { cutToBytes } from '../../kernel/cut-text.ts';
import type { Context } from '../context/context.ts';
import { ProviderBusyError } from '../paces/busy-error.ts';
import { type Made, makeTexts, TextFailures } from './make-texts.ts';
import { QuestionCache } from './question-cache.ts';
import {
  agentKey,
  type EmbeddingEvent,
  EmbeddingRequests,
  type EmbeddingService,
  type Owning,
} from './request.ts';

/** After a failed query, searches use words only for this time, without asking the provider. */
const restMs = 10_000;
const retry: Backoff = { baseMs: 2_000, maxMs: 10 * 60_000 };
/** How long the texts of an agent wait when its budget is used up. */
const budgetWaitMs = 60_000;
/** The limits of a request. */
const bounds = {
  /** UTF-8 bytes of a text that are sent: a token has at least one byte, and most models accept 8,192 tokens. */
  textBytesMax: 8_000,
  /** Texts per request; fewer after a failed request. */
  textsMax: 64,
};

export class Embedder {
  readonly model: string;
  readonly bounds = bounds;
  readonly #clock: Clock;
  readonly #requests: EmbeddingRequests;
  readonly #questions: QuestionCache;
  /** By organization: the monotonic time until which no query is sent. */
  readonly #resting = new Map<string, number>();
  /** By organization or agent: the monotonic time until which its texts wait, and the number of failures. */
  readonly #waiting = new Map<string, { readonly until: number; readonly failures: number }>();
  /** By organization: the texts of its next request, if fewer than the maximum. */
  readonly #batches = new Map<string, number>();
  /** By digest of a text: how often the provider failed for it alone while it accepted another text. */
  readonly #failures = new TextFailures();

  constructor(context: Context, model: EmbeddingService, observe: (event: EmbeddingEvent) => void) {
    this.model = model.name;
    this.#clock = context.clock;
    this.#requests = new EmbeddingRequests(context, model, observe);
    this.#questions = new QuestionCache(context.clock);
  }

  /** The vector of a query; null if the provider gives none in time. */
  async question(owning: Owning, text: string): Promise<Float32Array | null> {
    const key = JSON.stringify([owning.organizationId, text]);
    const known = this.#questions.get(key);
    if (known !== undefined) return known;
    const now = this.#clock.monotonic();
    const place = owning.organizationId;
    if ((this.#resting.get(place) ?? 0) > now) return null;
    try {
      const made = await this.#requests.make(
        owning,
        [cutToBytes(text, bounds.textBytesMax)],
        'question',
      );
      if (made === null) return null;
      const [vector = null] = made;
      if (vector !== null) this.#questions.set(key, vector);
      this.#requests.logRecovery(`question ${place}`, 'questions have vectors again');
      return vector;
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      // The provider may accept other queries, so it does not rest.
      if (error instanceof TextsRefusedError) return null;
      const ms = Math.min(restMs, error.retryAfterMs ?? restMs);
      this.#resting.set(place, this.#clock.monotonic() + ms);
      if (error.fault !== 'aborted') {
        const words = 'a question has no vector: memories are searched by words alone';
        this.#requests.logFailureOnce(
          `question ${place}`,
          { organization: place, reason: error.message },
          words,
        );
      }
      return null;
    }
  }

  /**
   * A vector for each text: null if the model refuses it, undefined if it has to wait. Calls `mayGoOn` before each further
   * request.
   */
  async texts(
    owning: Owning,
    given: readonly string[],
    mayGoOn: () => Promise<boolean>,
  ): Promise<readonly Made[]> {
    if (this.isWaiting(owning)) return given.map(() => undefined);
    const place = owning.organizationId;
    const batch = this.#batches.get(place) ?? bounds.textsMax;
    const { made, stopped } = await makeTexts(
      this.#requests,
      owning,
      given.map((text) => cutToBytes(text, bounds.textBytesMax)),
      { batch, failures: this.#failures },
      mayGoOn,
    );
    if (stopped === null) {
      this.#waiting.delete(place);
      if (batch < bounds.textsMax) this.#batches.set(place, batch * 2);
      this.#requests.logRecovery(`texts ${place}`, 'memories get vectors again');
    } else if (stopped === 'budget') {
      const until = this.#clock.monotonic() + budgetWaitMs;
      this.#waiting.set(agentKey(owning), { until, failures: 0 });
    } else if (stopped.fault === 'aborted') {
      this.#postponeFor(owning, null);
    } else {
      // A slow provider may answer in time for fewer texts.
      if (!(stopped instanceof ProviderBusyError))
        this.#batches.set(place, Math.max(1, Math.floor(batch / 2)));
      this.postpone(owning, stopped.message, stopped.retryAfterMs);
    }
    return made;
  }

  /** Delays the texts of an organization and logs why. Without a given time, the delay grows with each failure. */
  postpone(owning: Owning, reason: string, waitMs: number | null): void {
    const { organizationId } = owning;
    this.#postponeFor(owning, waitMs);
    const words = 'memories wait for vectors: they are found by words until then';
    this.#requests.logFailureOnce(
      `texts ${organizationId}`,
      { organization: organizationId, reason },
      words,
    );
  }

  #postponeFor({ organizationId }: Owning, askedMs: number | null): void {
    const waiting = this.#waiting;
    const failures = (waiting.get(organizationId)?.failures ?? 0) + 1;
    const waitMs = Math.min(askedMs ?? delayAfter(retry, failures), retry.maxMs);
    waiting.set(organizationId, { until: this.#clock.monotonic() + waitMs, failures });
  }

  /** Whether the texts of an agent have to wait for its provider or its budget. */
  isWaiting(owning: Owning): boolean {
    const waiting = this.#waiting;
    const now = this.#clock.monotonic();
    return [owning.organizationId, agentKey(owning)].some(
      (key) => (waiting.get(key)?.until ?? 0) > now,
    );
  }

  /** Ends the calls under way. */
  stop(): void {
    this.#requests.stop();
  }
}
