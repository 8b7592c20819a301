/** The statements that write the full-text index of memories. */
import { sql } from 'kysely';
import type { Dialect, Transaction } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';

/** An entry of the index. */
export interface Indexed {
  readonly seq: number;
  /** The owners under which the memory is indexed. */
  readonly owners: readonly number[];
  /** All indexed terms. A deletion from the index needs exactly the terms that were inserted. */
  readonly terms: string;
}

/** Adds new memories to the index. */
export async function indexMemories(tx: Transaction, memories: readonly Indexed[]): Promise<void> {
  await tx.insert(
    'memory_index',
    memories.map(({ seq, ...entry }) => ({ rowid: seq, tokens: tokensText(tx.dialect, entry) })),
  );
}

export async function reindexMemory(
  tx: Transaction,
  before: Indexed,
  terms: string,
): Promise<void> {
  await unindex(tx, [before]);
  await indexMemories(tx, [{ ...before, terms }]);
}

const deleteIndexed = statement<{ seq: number; tokens: string }>()((db, p, dialect) =>
  dialect === 'sqlite'
    ? db
        .insertInto('memory_index')
        .values({ memory_index: sql.lit('delete'), rowid: p('seq'), tokens: p('tokens') })
    : db.deleteFrom('memory_index').where('rowid', '=', p('seq')),
);

export function unindex(tx: Transaction, memories: readonly Indexed[]): Promise<void> {
  return tx.each(
    deleteIndexed,
    memories.map(({ seq, ...entry }) => ({ seq, tokens: tokensText(tx.dialect, entry) })),
  );
}

/** The indexed text: every term of `termsText` once for each owner. */
function tokensText(dialect: Dialect, { owners, terms }: Omit<Indexed, 'seq'>): string {
  // Terms contain no character that PostgreSQL would need escaped.
  const [before, between, after] = dialect === 'sqlite' ? ['', ' ', ''] : ["'", "' '", "'"];
  return owners
    .map((owner) => `${before}${owner}${terms.replaceAll(' ', `${between}${owner}`)}${after}`)
    .join(' ');
}

/** Pages of the index that are merged in one transaction. */
const mergedPages = 200;

/**
 * Merges a part of SQLite's index, so that no word of a deleted memory stays in it. Returns whether there is more to
 * merge. FTS5's option `secure-delete` is not used: it corrupts a contentless index with replaced entries.
 */
export async function compactIndex(tx: Transaction, isFirst: boolean): Promise<boolean> {
  if (tx.dialect !== 'sqlite') return false;
  const changes = async () =>
    (await sql<{ n: number }>`select total_changes() as n`.execute(tx.kysely)).rows[0]?.n ?? 0;
  const before = await changes();
  await sql`insert into memory_index (memory_index, rank)
    values ('merge', ${sql.lit(isFirst ? -mergedPages : mergedPages)})`.execute(tx.kysely);
  return (await changes()) - before >= 2;
}
