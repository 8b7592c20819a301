import type { ReactNode } from 'react';
import { classes } from '../ui/classes.ts';
import { visibleText } from './definition-text.ts';
import { type DifferentLines, sideBySide } from './difference.ts';

/** Two versions side by side, line by line; one below the other on a phone. */
export function Difference({ label, text }: { label: string; text: string }) {
  const shown = visibleText(text);
  return (
    <SideBySide label={label} heads={['Accepted', 'New']} rows={sideBySide(shown)} text={shown} />
  );
}

/** Rows of lines under two heads; `text` is shown where there are no rows. */
export function SideBySide({
  label,
  heads: [before, after],
  rows,
  text = '',
}: {
  label: string;
  heads: readonly [string, string];
  rows: readonly DifferentLines[];
  text?: string;
}) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
      tabIndex={0}
      className="max-h-[34rem] overflow-auto rounded-md border bg-sunken font-mono text-xs leading-relaxed"
    >
      {rows.length === 0 ? (
        <p className="p-3 wrap-anywhere whitespace-pre-wrap">{text}</p>
      ) : (
        <table className="w-full table-fixed border-collapse max-sm:block">
          <caption className="sr-only">{label}</caption>
          <thead className="max-sm:sr-only">
            <tr className="text-left text-muted">
              <th scope="col" className="border-r border-b px-3 py-1.5 font-medium">
                {before}
              </th>
              <th scope="col" className="border-b px-3 py-1.5 font-medium">
                {after}
              </th>
            </tr>
          </thead>
          <tbody className="max-sm:block">
            {rows.map((row, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and never move
              <Line key={i} row={row} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Line({ row: { kind, before, after } }: { row: DifferentLines }) {
  if (kind === 'gap' || kind === 'cut') {
    return (
      <tr className="max-sm:block">
        <td colSpan={2} className="px-3 py-1 text-muted max-sm:block">
          {kind === 'gap' ? '…' : '… (shortened: the whole definition has the rest)'}
        </td>
      </tr>
    );
  }
  const isChanged = kind === 'changed';
  return (
    <tr className="align-top max-sm:block">
      <Cell
        sign={isChanged && before !== null ? '−' : ''}
        tone="bg-bad-soft text-bad-text"
        side="border-r"
      >
        {before}
      </Cell>
      {/* Lines that are equal are shown once on a phone. */}
      <Cell
        sign={isChanged && after !== null ? '+' : ''}
        tone="bg-good-soft text-good-text"
        side={isChanged ? '' : 'max-sm:hidden'}
      >
        {after}
      </Cell>
    </tr>
  );
}

function Cell({
  sign,
  tone,
  side,
  children,
}: {
  sign: string;
  tone: string;
  side: string;
  children: ReactNode;
}) {
  return (
    <td
      className={classes(
        'px-3 py-px wrap-anywhere whitespace-pre-wrap max-sm:block max-sm:border-r-0',
        children === null && 'max-sm:hidden',
        sign !== '' && tone,
        side,
      )}
    >
      {sign !== '' && (
        <span
          className="mr-2 select-none"
          aria-label={sign === '+' ? 'added' : 'removed'}
          role="img"
        >
          {sign}
        </span>
      )}
      {children}
    </td>
  );
}
