import { type SelectQueryBuilder, sql } from 'kysely';

/** How many rows a query has. */
export async function countRows<DB, TB extends keyof DB>(
  query: SelectQueryBuilder<DB, TB, Record<never, unknown>>,
): Promise<number> {
  const rows = await query.select(sql<number>`count(*)`.as('n')).execute();
  return Number((rows[0] as { readonly n: number } | undefined)?.n ?? 0);
}
