/** The queries of forks: conversations that begin with messages of another one. */
import { type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import { fittingRows } from '../../../adapters/database/page-bytes.ts';
import { firstRow, statement } from '../../../adapters/database/statement.ts';

/** A part of a conversation: the messages before one, or all. */
interface Part {
  readonly conversation_id: string;
  /** The id of the first message that is left out; one that is greater than all for the whole conversation. */
  readonly before: string;
}

/** Greater than the id of any message. */
export const afterAll = 'g';

export const findMessage = firstRow<{ conversation_id: string; id: string }>()((db, p) =>
  db
    .selectFrom('messages')
    .select('id')
    .where('conversation_id', '=', p('conversation_id'))
    .where('id', '=', p('id')),
);

/** How many forks there are of one conversation and of its forks. */
export const countForks = firstRow<{ forked_from: string }, Transaction>()((db, p) =>
  db
    .selectFrom('conversations')
    .select(sql<number>`count(*)`.as('count'))
    .where('forked_from', '=', p('forked_from')),
);

const sizes = statement<Part & { limit: number }>()((db, p) =>
  db
    .selectFrom('messages')
    .select([
      'id',
      sql<number>`octet_length(content) + octet_length(coalesce(data, ''))`.as('bytes'),
    ])
    .where('conversation_id', '=', p('conversation_id'))
    .where('id', '<', p('before'))
    .where(isNotHeld)
    .orderBy('id', 'desc')
    .limit(p('limit')),
);

/** The newest messages of a part within the bounds: the first of them, how many they are, and whether there are older ones. */
export async function newestOf(
  db: Handle,
  part: Part,
  { limit, bytesMax }: { readonly limit: number; readonly bytesMax: number },
): Promise<{
  readonly first: string | undefined;
  readonly count: number;
  readonly isCut: boolean;
}> {
  const rows = await db.all(sizes, { ...part, limit: limit + 1 });
  const newest = rows.slice(0, limit);
  const kept = newest.slice(0, fittingRows(newest, bytesMax));
  return { first: kept.at(-1)?.id, count: kept.length, isCut: kept.length < rows.length };
}

const copiedColumns = [
  'id',
  'job_id',
  'role',
  'content',
  'created_at',
  'dialogue',
  'data',
  'model',
] as const;

const copy = statement<Part & { first: string; to: string }>()((db, p) =>
  db
    .insertInto('messages')
    .columns(['conversation_id', ...copiedColumns])
    .expression(
      db
        .selectFrom('messages')
        .select([sql<string>`cast(${p('to')} as text)`.as('conversation_id'), ...copiedColumns])
        .where('conversation_id', '=', p('conversation_id'))
        .where('id', '>=', p('first'))
        .where('id', '<', p('before'))
        .where(isNotHeld),
    ),
);

// What guards have not passed yet is released in its own conversation alone.
const isNotHeld = sql<SqlBool>`not (dialogue = 0 and coalesce(data, '') like '%"isHeld":%')`;

/** Copies messages, with their ids and their jobs, and without their tokens: these were spent once. */
export function copyMessages(
  tx: Transaction,
  copied: Part & { readonly first: string; readonly to: string },
): Promise<void> {
  return tx.each(copy, [copied]);
}
