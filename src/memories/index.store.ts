/** What writes the full-text index of memories. */
import { sql } from 'kysely';
import type { Dialect, Transaction } from '../database/database.ts';
import { statement } from '../database/statement.ts';

/** An entry of the index. */
export interface Indexed {
  readonly seq: number;
  /** The owners under which it is found. */
  readonly owners: readonly number[];
  /** All that it is found by: what leaves the index has to be named exactly. */
  readonly terms: string;
}

/** Adds memories to the index that are in no index yet. */
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

/** What the index is given: terms, as `termsText` writes them, each under each of its owners. */
function tokensText(dialect: Dialect, { owners, terms }: Omit<Indexed, 'seq'>): string {
  // Terms have no character that would have to be escaped for PostgreSQL.
  const [before, between, after] = dialect === 'sqlite' ? ['', ' ', ''] : ["'", "' '", "'"];
  return owners
    .map((owner) => `${before}${owner}${terms.replaceAll(' ', `${between}${owner}`)}${after}`)
    .join(' ');
}

/** Pages of the index that are merged in one transaction. */
const mergedPages = 200;

/**
 * Merges a part of SQLite's index, so that no word of a deleted memory stays in it; whether there is more. Its option
 * `secure-delete` would do without, but damages an index of this kind where an entry was replaced before.
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
