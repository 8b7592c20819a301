import type { ReactNode } from 'react';
import { classes } from './classes.ts';

export interface Column<Row> {
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are right-aligned, with their unit. */
  readonly align?: 'right';
  /** Hidden on narrow screens. */
  readonly from?: 'sm' | 'md' | 'lg';
  /** Takes the remaining width, and is truncated. */
  readonly grows?: boolean;
  /** The header is for screen readers only, such as that of a column of buttons. */
  readonly isHeaderHidden?: boolean;
}

const shownFrom = { sm: 'max-sm:hidden', md: 'max-md:hidden', lg: 'max-lg:hidden' };

/**
 * A table of resources. A `RowLink` in the first column makes the whole row a link. `caption` describes
 * the table for screen readers.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  empty,
}: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** Shown instead of a table without rows. */
  empty?: ReactNode;
}) {
  if (rows.length === 0 && empty !== undefined) return empty;
  const cellClasses = (column: Column<Row>) =>
    classes(
      'px-4 py-2.5 first:pl-4 last:pr-4 max-sm:px-3',
      column.align === 'right' && 'text-right tabular-nums',
      column.from && shownFrom[column.from],
      column.grows && 'w-full max-w-0 min-w-28 truncate',
    );
  // On a phone a word is broken rather than a column cut off.
  const bodyClasses = (column: Column<Row>) =>
    classes(
      cellClasses(column),
      !column.grows && 'whitespace-nowrap',
      !column.grows && !column.align && 'max-sm:whitespace-normal max-sm:wrap-anywhere',
    );
  return (
    // What may have to be scrolled has to be reached by the keyboard.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: as above
    <section aria-label={caption} tabIndex={0} className="overflow-x-auto -outline-offset-2">
      <table className="w-full text-[13px]">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr className="border-b bg-sunken text-left text-xs text-muted">
            {columns.map((column) => (
              <th
                key={column.header}
                scope="col"
                className={classes(cellClasses(column), 'py-2 font-medium whitespace-nowrap')}
              >
                {column.isHeaderHidden ? (
                  <span className="sr-only">{column.header}</span>
                ) : (
                  column.header
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              className="relative border-b transition-colors last:border-0 hover:bg-hover"
            >
              {columns.map((column) => (
                <td key={column.header} className={bodyClasses(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** For the link of a row: it covers the row, so that a click anywhere follows it. */
export const rowLink = 'font-medium after:absolute after:inset-0 hover:underline';
/** For controls within such a row: above the link. */
export const aboveRowLink = 'relative z-10';
