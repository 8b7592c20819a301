/**
 * Pages that are bounded in bytes as well as in rows. A list reads the sizes of its page's rows first,
 * which costs little however large they are, and then only the rows that fit.
 */
import { type RawBuilder, sql } from 'kysely';

/** Bytes of the rows of one page, as they are stored, beyond those of the first row. */
export const pageBytesMax = 4 * 1024 * 1024;

export interface PageAsked {
  readonly limit: number;
  readonly offset: number;
}

/** The first rows of a page, and the offset of those that were cut off; null when none were. */
export interface PageCut<Row> {
  readonly rows: readonly Row[];
  readonly next: number | null;
}

/** UTF-8 bytes of text columns of a row. Neither database reads the text itself for it. */
export function bytesOf(...columns: readonly [string, ...string[]]): RawBuilder<number> {
  const sizes = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`);
  return sql<number>`${sql.join(sizes, sql` + `)}`;
}

/** Of a page's rows the first ones whose bytes fit: at least one, so that a client gets further. */
export function cutPage<Row extends { readonly bytes: number }>(
  rows: readonly Row[],
  { offset }: Pick<PageAsked, 'offset'>,
  max = pageBytesMax,
): PageCut<Row> {
  const fitting = fittingRows(rows, max);
  return { rows: rows.slice(0, fitting), next: fitting < rows.length ? offset + fitting : null };
}

/** How many of the first rows come to at most `max` bytes; at least one, if there are any. */
export function fittingRows(rows: readonly { readonly bytes: number }[], max: number): number {
  let bytes = 0;
  const end = rows.findIndex((row, i) => {
    bytes += Number(row.bytes);
    return i > 0 && bytes > max;
  });
  return end === -1 ? rows.length : end;
}
