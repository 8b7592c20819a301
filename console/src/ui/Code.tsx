import { Fragment, type ReactNode, useState } from 'react';
import { IconButton } from './Button.tsx';
import { classes } from './classes.ts';
import { Check, Copy } from './icons.tsx';
import { tellProblem } from './toast.ts';

/** How long the confirmation tick is shown. */
const copiedMs = 1_500;

export function CopyButton({
  text,
  label = 'Copy',
  className,
}: {
  text: string;
  label?: string;
  className?: string;
}) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), copiedMs);
    } catch {
      tellProblem(
        'Not copied',
        new Error(
          'Browsers allow it over HTTPS or on the same machine alone: select the text and copy it',
        ),
      );
    }
  }
  return (
    <IconButton
      label={isCopied ? 'Copied' : label}
      icon={isCopied ? <Check className="text-good" /> : <Copy />}
      onClick={() => void copy()}
      {...(className === undefined ? {} : { className })}
    />
  );
}

/** Text that machines read, to be copied. Scrolls within itself. */
export function Code({
  text,
  label,
  tall = false,
  children,
}: {
  text: string;
  /** Its name for screen readers. */
  label: string;
  tall?: boolean;
  /** The same text, coloured. */
  children?: ReactNode;
}) {
  return (
    <section aria-label={label} className="relative min-w-0 rounded-md border bg-sunken">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
        className={classes(
          'overflow-auto p-3 pr-10 font-mono text-xs leading-relaxed break-words whitespace-pre-wrap',
          tall ? 'max-h-[34rem]' : 'max-h-80',
        )}
      >
        {children ?? text}
      </pre>
      <CopyButton
        text={text}
        label={`Copy ${label.toLowerCase()}`}
        className="absolute top-1.5 right-1.5"
      />
    </section>
  );
}

/** Strings, with what follows a name apart; then numbers and the three words. */
const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|\b(true|false|null)\b/gi;
/** Colouring more than this would hold up the page. */
const colouredMax = 60_000;

function coloured(text: string): ReactNode {
  if (text.length > colouredMax) return text;
  const parts: ReactNode[] = [];
  let at = 0;
  for (const match of text.matchAll(tokens)) {
    const [whole, string, colon, number] = match;
    parts.push(<Fragment key={`${at}-`}>{text.slice(at, match.index)}</Fragment>);
    const look = colon
      ? 'text-accent-text'
      : string
        ? 'text-good-text'
        : number
          ? 'text-busy-text'
          : 'text-warn-text';
    parts.push(
      <span key={at} className={look}>
        {string ?? whole}
      </span>,
      colon,
    );
    at = match.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts.map((part, i) => <Fragment key={String(i)}>{part}</Fragment>);
}

/** Data as JSON. */
export function Json({ value, label, tall }: { value: unknown; label: string; tall?: boolean }) {
  const text = JSON.stringify(value, null, 2) ?? 'undefined';
  return (
    <Code text={text} label={label} {...(tall === undefined ? {} : { tall })}>
      {coloured(text)}
    </Code>
  );
}
