/** One request for vectors: within the budget of an agent, counted for it and for the model, and told to the log once. */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import type { Embeddings } from '../models/embeddings.ts';
import { ModelError, type ModelFault, mayBeCharged, type Usage } from '../models/model.ts';
import { costOf, type Price } from '../models/price.ts';
import type { Prices } from '../models/prices.ts';
import { budgetFault } from '../usage/check-budget.ts';
import { charge } from '../usage/reservations.ts';

/** How long a search waits for the vector of its question, and texts of memories for theirs. */
const questionMs = 2_000;
const textsMs = 30_000;
/** Troubles that are remembered as told to the log. */
const saidMax = 10_000;

/** The agent whose texts they are; it is charged. */
export interface Owning {
  readonly organizationId: string;
  readonly agentId: string;
}

type Purpose = 'question' | 'memory';

/** What became of a request. */
export interface EmbeddingEvent {
  readonly purpose: Purpose;
  readonly outcome: 'answered' | 'budget' | ModelFault;
  readonly usage: Usage | null;
  readonly cost: number | null;
}

export interface RequestDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** The model, how it is asked, and what it costs. */
  readonly model: {
    readonly name: string;
    readonly embeddings: Embeddings;
    readonly prices: Prices;
  };
  observe(event: EmbeddingEvent): void;
}

export interface RequestState extends RequestDeps {
  readonly stopping: AbortController;
  /** What the log has said, until it holds no more. */
  readonly said: Set<string>;
}

export const agentKey = ({ organizationId, agentId }: Owning) => `${organizationId}/${agentId}`;

/** One request; null where the budget of the agent has no room for it. */
export async function make(
  state: RequestState,
  owning: Owning,
  given: readonly string[],
  purpose: Purpose,
): Promise<readonly Float32Array[] | null> {
  const { clock, database, model, observe } = state;
  const { organizationId, agentId } = owning;
  const startedAt = clock.now();
  const price = model.prices.at(model.name, startedAt) ?? null;
  const bytes = given.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const owner = { kind: 'agent', id: agentId } as const;
  const need = { prompt: bytes, output: 0, model: model.name, price };
  const fault = await budgetFault(database.read, { organizationId, owner, ...need }, startedAt);
  if (fault !== null) {
    observe({ purpose, outcome: 'budget', usage: null, cost: null });
    const words =
      'the budget of an agent has no room for vectors: its memories are searched by words';
    noteBad(state, `budget ${agentKey(owning)}`, { ...owning, reason: fault }, words);
    return null;
  }
  noteGood(
    state,
    `budget ${agentKey(owning)}`,
    'the budget of an agent has room for vectors again',
  );
  const call = { model: model.name, organizationId, texts: given, signal: state.stopping.signal };
  const timeoutMs = purpose === 'question' ? questionMs : textsMs;
  try {
    const { vectors, usage } = await model.embeddings.embed({ ...call, timeoutMs });
    await record(state, owning, { usage, bytes, price, startedAt }).catch((error: unknown) => {
      // A search needs no write: it goes on with the vector that it has.
      if (purpose === 'memory') throw error;
      noteBad(state, 'record', { err: error }, 'the tokens of a question were not counted');
    });
    const cost = price === null ? null : costOf(usage, price);
    observe({ purpose, outcome: 'answered', usage, cost });
    return vectors;
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    const { usage, fault: outcome } = error;
    if (mayBeCharged(usage) && outcome !== 'aborted') {
      await record(state, owning, { usage, bytes, price, startedAt });
    }
    observe({ purpose, outcome, usage: null, cost: null });
    throw error;
  }
}

interface Spent {
  readonly usage: Usage;
  /** UTF-8 bytes of the texts, from which unreported tokens are estimated. */
  readonly bytes: number;
  readonly price: Price | null;
  readonly startedAt: number;
}

/** Bytes of a token, on average. */
const tokenBytes = 4;

/** Counts a call for its agent and for the model. */
async function record(
  { database, model }: RequestState,
  { organizationId, agentId }: Owning,
  { usage, bytes, price, startedAt }: Spent,
): Promise<void> {
  const estimated = usage.prompt === null ? Math.ceil(bytes / tokenBytes) : 0;
  const estimate = { prompt: estimated, completion: 0 };
  await database.write((tx) =>
    charge(tx, [
      {
        organizationId,
        owners: [],
        counted: [
          { kind: 'agent', id: agentId },
          { kind: 'embedding_model', id: model.name },
        ],
        reservedAt: startedAt,
        reserved: 0,
        reservedCost: 0,
        usage,
        estimated,
        cost: price === null ? null : costOf(usage, price),
        estimatedCost: price === null ? 0 : (costOf(estimate, price) ?? 0),
        isPriced: price !== null,
      },
    ]),
  );
}

export function noteBad(
  { said, log }: RequestState,
  key: string,
  more: object,
  words: string,
): void {
  if (said.has(key)) return;
  if (said.size >= saidMax) said.clear();
  said.add(key);
  log.warn(more, words);
}

export function noteGood({ said, log }: RequestState, key: string, words: string): void {
  if (said.delete(key)) log.info(words);
}
