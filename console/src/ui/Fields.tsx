import { useState } from 'react';
import { Button } from './Button.tsx';
import { classes } from './classes.ts';
import { type FieldRow, fieldRows } from './field-rows.ts';
import { countText } from './Time.tsx';

/** Lines that are shown at first. */
const rowsMax = 12;
/** Lines that are shown at most. */
const allMax = 1_000;
const indents = ['pl-0', 'pl-4', 'pl-8', 'pl-12', 'pl-16', 'pl-20', 'pl-24'];

/** Data as a table of names and values, with nested values indented. `brief` shows its beginning at first. */
export function Fields({
  value,
  label,
  brief = false,
}: {
  value: unknown;
  label: string;
  brief?: boolean;
}) {
  const [isWhole, setWhole] = useState(!brief);
  const rows = fieldRows(value);
  const isCut = !isWhole && (rows.length > rowsMax || rows.some(isLong));
  const shown = rows.slice(0, isWhole ? allMax : rowsMax);
  if (rows.length === 0) return null;
  return (
    <div className="min-w-0">
      <table aria-label={label} className="w-full table-fixed text-[13px]">
        <tbody>
          {shown.map((row) => (
            <tr key={row.path} className="border-b border-line/60 last:border-0">
              <th
                scope="row"
                className={classes(
                  'w-52 py-1 pr-5 text-left align-top font-normal text-muted max-sm:w-32 max-sm:pr-3',
                  row.text === null && 'font-medium',
                )}
              >
                <span className={classes('block wrap-anywhere', indents[row.depth])}>
                  {row.name}
                </span>
              </th>
              <td className="py-1 align-top">
                {row.text !== null && (
                  <span
                    className={classes(
                      'wrap-anywhere whitespace-pre-wrap',
                      row.isNote && 'text-muted italic',
                      isCut && 'line-clamp-4',
                    )}
                  >
                    {row.text}
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {isCut && (
        <Button size="small" look="quiet" onClick={() => setWhole(true)} className="mt-1 -ml-2">
          {rows.length > rowsMax ? `Show all ${countText(rows.length)} lines` : 'Show all'}
        </Button>
      )}
      {isWhole && rows.length > allMax && (
        <p className="mt-1 text-xs text-muted">
          The first {countText(allMax)} of {countText(rows.length)} lines.
        </p>
      )}
    </div>
  );
}

/** More than four lines, about. */
const isLong = ({ text }: FieldRow): boolean =>
  text !== null && (text.length > 300 || text.split('\n').length > 4);
