/**
 * How many queued jobs of each kind are due, and how many begin later. The kept counts know only both together, so the fewer of
 * the two are counted among the rows, where an index holds them by organization: the others are the rest. Where an organization
 * has very many of both, these are lower bounds.
 */
import type { Handle } from '../../../adapters/database/database.ts';
import {
  countQueued,
  countQueuedKinds,
  type JobKind,
  type QueuedKind,
  type Side,
} from './queued-jobs.store.ts';

/** Due and later jobs of an organization are counted to here, and of each of many. */
export const countedMax = 10_000;
const countedOfEachMax = 1_000;
/** Jobs that are counted by kind, of all organizations together, and of one at least. */
const readMax = 10_000;
const readOfEachMin = 10;

/** Due and later jobs of a kind or an organization. */
export interface DueAndLater {
  readonly due: number;
  readonly later: number;
  /** Whether there may be more of both. */
  readonly isAtLeast: boolean;
}

export class QueuedCounts {
  /** Of each organization the side that was counted; null where both are lower bounds. */
  readonly #sides: ReadonlyMap<string, Side | null>;
  readonly #counted: ReadonlyMap<string, Record<Side, number>>;
  readonly #kinds: Readonly<Record<Side, ReadonlyMap<string, QueuedKind>>>;

  constructor(
    sides: ReadonlyMap<string, Side | null>,
    counted: ReadonlyMap<string, Record<Side, number>>,
    kinds: Readonly<Record<Side, readonly QueuedKind[]>>,
  ) {
    this.#sides = sides;
    this.#counted = counted;
    const byKey = (some: readonly QueuedKind[]) => new Map(some.map((kind) => [keyOf(kind), kind]));
    this.#kinds = { due: byKey(kinds.due), later: byKey(kinds.later) };
  }

  /** Of a kind of which so many are queued. */
  of(kind: JobKind, queued: number): DueAndLater {
    const key = keyOf(kind);
    const due = this.#kinds.due.get(key)?.n ?? 0;
    const later = this.#kinds.later.get(key)?.n ?? 0;
    const side = this.#sides.get(kind.organization_id);
    if (side === 'later') return { due: Math.max(0, queued - later), later, isAtLeast: false };
    if (side === 'due') return { due, later: Math.max(0, queued - due), isAtLeast: false };
    return { due, later, isAtLeast: true };
  }

  /** At least so many are of an organization. */
  ofOrganization(id: string): Record<Side, number> {
    return this.#counted.get(id) ?? { due: 0, later: 0 };
  }

  /** When the first of the later jobs of each kind begins, where it was read. */
  get later(): Iterable<QueuedKind> {
    return this.#kinds.later.values();
  }
}

const keyOf = (kind: JobKind) =>
  [
    kind.organization_id,
    kind.agent_id,
    kind.skill_category,
    kind.skill_version,
    kind.skill_name,
    kind.trigger_type,
  ].join('\n');

/** Later jobs, and due ones: of these no more than matter for which are fewer. */
async function countBoth(db: Handle, ids: readonly string[], now: number, max: number) {
  const later = await countQueued(db, ids, 'later', now, max);
  const some = ids.filter((id) => (later.get(id) ?? 0) > 0);
  const due = await countQueued(db, some, 'due', now, Math.max(0, ...later.values()));
  return new Map(ids.map((id) => [id, { due: due.get(id) ?? 0, later: later.get(id) ?? 0 }]));
}

/** Reads it for the organizations. */
export async function countByKind(
  db: Handle,
  ids: readonly string[],
  now: number,
): Promise<QueuedCounts> {
  const max = ids.length === 1 ? countedMax : countedOfEachMax;
  const counted = await countBoth(db, ids, now, max);
  const sides = new Map<string, Side | null>();
  let read = 0;
  const fewer = ({ due, later }: Record<Side, number>) => Math.min(due, later);
  for (const [id, counts] of [...counted].toSorted(([, a], [, b]) => fewer(a) - fewer(b))) {
    read += fewer(counts);
    const isRead = fewer(counts) < max && read <= readMax;
    sides.set(id, isRead ? (counts.later <= counts.due ? 'later' : 'due') : null);
  }
  const on = (side: Side | null) =>
    ids.filter(
      (id) => sides.get(id) === side && (side === null || (counted.get(id)?.[side] ?? 0) > 0),
    );
  const bounds = on(null);
  const ofEach = Math.min(max, Math.max(readOfEachMin, Math.ceil(readMax / (bounds.length || 1))));
  const [due, later, moreDue, moreLater] = await Promise.all([
    countQueuedKinds(db, on('due'), 'due', now, max),
    countQueuedKinds(db, on('later'), 'later', now, max),
    countQueuedKinds(db, bounds, 'due', now, ofEach),
    countQueuedKinds(db, bounds, 'later', now, ofEach),
  ]);
  return new QueuedCounts(sides, counted, {
    due: [...due, ...moreDue],
    later: [...later, ...moreLater],
  });
}
