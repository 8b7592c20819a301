/**
 * Calls of embedding models against the budget of their agent: tokens are reserved before a call and charged after it.
 * These calls have no journal, so each reservation is a row; a call whose process has died is charged an estimate later.
 * Without a budget nothing is reserved, and nothing is written before the call.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { mayBeCharged, nothingReported, type Usage } from '../../adapters/models/model.ts';
import {
  costOf,
  type Price,
  type PriceBody,
  priceBodyOf,
  priceOfBody,
} from '../../adapters/models/price.ts';
import type { Clock } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import {
  type EmbeddingCallRow,
  insertCall,
  listLost,
  setAsideCalls,
  takeCall,
} from './embedding-calls.store.ts';
import { keyOf } from './owners.ts';
import { type Charge, charge, reserve } from './reservations.ts';
import { findBudget, setAsideUsage } from './usage.store.ts';

/** An older call counts as lost: a call takes 30 seconds at most, and its writes little more. */
const lostAfterMs = 90_000;
/** Lost calls of one transaction. */
const lostMax = 100;

/** A call that is to be made. */
export interface EmbeddingNeed {
  readonly organizationId: string;
  readonly agentId: string;
  readonly model: string;
  /** Null where it is unknown. */
  readonly price: Price | null;
  /** The most tokens that its texts can have, and those that they most likely have. */
  readonly most: number;
  readonly expected: number;
  /** The share of the budget's rest that the call may reserve at most. */
  readonly share: number;
}

/** A granted call, to be passed to `endCall`. Nothing is reserved if `reserved` is 0. */
export type OpenCall = EmbeddingCallRow;

/** The message is a sentence that says why there is no room. */
export type Opening =
  | { readonly kind: 'open'; readonly call: OpenCall }
  | { readonly kind: 'full'; readonly message: string };

interface EmbeddingCallsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/** Reserves the maximum tokens of a call. Does not wait: a budget that other calls have reserved counts as full. */
export async function openCall(
  { database, clock }: EmbeddingCallsDeps,
  { organizationId, agentId, model, price, most, expected, share }: EmbeddingNeed,
): Promise<Opening> {
  const now = clock.now();
  const owner = { kind: 'agent', id: agentId } as const;
  const key = keyOf(owner);
  const call: OpenCall = {
    id: newId(),
    organization_id: organizationId,
    ...key,
    ...{ model, expected, reserved_at: now, reserved: 0, reserved_cost: 0 },
    price: price === null ? null : JSON.stringify(priceBodyOf(price)),
    lost_at: now + lostAfterMs,
  };
  if ((await findBudget(database.read, organizationId, key)) === undefined) {
    return { kind: 'open', call };
  }
  return await database.write(async (tx) => {
    const need = { prompt: most, output: 0, model, price, share };
    const reservation = await reserve(tx, { organizationId, owners: [owner], ...need }, now);
    if (reservation.kind !== 'granted') return { kind: 'full', message: reservation.message };
    const { reserved, reservedCost: reserved_cost } = reservation;
    const held = { ...call, reserved, reserved_cost };
    await insertCall(tx, held);
    return { kind: 'open', call: held };
  });
}

/** Charges a call that has ended; nothing where it was charged as lost. */
export async function endCall(
  { database }: Pick<EmbeddingCallsDeps, 'database'>,
  call: OpenCall,
  usage: Usage,
): Promise<void> {
  await database.write(async (tx) => {
    const row = call.reserved === 0 ? call : await takeCall(tx, call);
    if (row !== undefined) await charge(tx, [chargeOf(row, usage)]);
  });
}

/** Charges lost calls an estimate; returns their number. */
export async function endLostCalls({ database, clock }: EmbeddingCallsDeps): Promise<number> {
  const lost = await listLost(database.read, { now: clock.now(), limit: lostMax });
  if (lost.length === 0) return 0;
  return await database.write(async (tx) => {
    const charges: Charge[] = [];
    for (const call of lost) {
      const row = await takeCall(tx, call);
      if (row !== undefined) charges.push(chargeOf(row, nothingReported));
    }
    await charge(tx, charges);
    return charges.length;
  });
}

/** A new agent begins with nothing used and nothing held. */
export async function setAsideUse(
  tx: Transaction,
  organizationId: string,
  agentId: string,
): Promise<void> {
  // The calls first, in the order in which a call that ends locks both.
  await setAsideCalls(tx, organizationId, agentId);
  await setAsideUsage(tx, organizationId, agentId);
}

function chargeOf(call: OpenCall, usage: Usage): Charge {
  const { organization_id: organizationId, model, expected, reserved } = call;
  const owner = { kind: call.owner_kind, id: call.owner_id };
  const ofModel = { kind: 'embedding_model', id: model } as const;
  const price = call.price === null ? null : priceOfBody(JSON.parse(call.price) as PriceBody);
  const isUnused = !mayBeCharged(usage);
  const estimated = usage.prompt === null ? expected : 0;
  return {
    organizationId,
    owners: reserved === 0 ? [] : [owner],
    counted: reserved === 0 ? [owner, ofModel] : [ofModel],
    reservedAt: call.reserved_at,
    reserved,
    reservedCost: call.reserved_cost,
    usage,
    estimated,
    cost: price === null ? (isUnused ? 0 : null) : costOf(usage, price),
    estimatedCost: price === null ? 0 : (costOf({ prompt: estimated, completion: 0 }, price) ?? 0),
    isPriced: price !== null || isUnused,
  };
}
