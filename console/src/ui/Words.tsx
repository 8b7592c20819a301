import { Fragment } from 'react';

/** A sentence in which text between backticks is shown as code. */
export function Words({ text }: { text: string }) {
  return text.split(/`([^`\n]+)`/).map((part, i) =>
    i % 2 === 0 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence stay where they are
      <Fragment key={i}>{part}</Fragment>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the same
      <code key={i} className="font-mono text-[0.92em]">
        {part}
      </code>
    ),
  );
}
