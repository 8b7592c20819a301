/** What one text has that another has not, line by line. */
import { diffLines } from 'diff';
import { classes } from '../ui/classes.ts';

/** Texts that differ in more lines are shown as wholly different. */
const differentMax = 2_000;

export function Difference({ label, from, to }: { label: string; from: string; to: string }) {
  const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`);
  const parts = diffLines(ended(from), ended(to), { maxEditLength: differentMax }) ?? [
    { removed: true, added: false, value: from },
    { removed: false, added: true, value: to },
  ];
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
      tabIndex={0}
      className="max-h-80 overflow-auto rounded-md border bg-sunken py-1 font-mono text-xs leading-relaxed"
    >
      {parts.map(({ added, removed, value }, i) => {
        const look = added ? added : removed;
        return (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity but their place
            key={i}
            className={classes(
              'px-3 break-words whitespace-pre-wrap',
              added && 'bg-good-soft text-good-text',
              removed && 'bg-bad-soft text-bad-text line-through decoration-1',
              !look && 'text-muted',
            )}
          >
            {look && <span className="sr-only">{added ? 'Added: ' : 'Removed: '}</span>}
            {value.replace(/\n$/, '')}
          </div>
        );
      })}
    </section>
  );
}
