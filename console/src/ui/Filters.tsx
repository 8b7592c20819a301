/** What narrows a list down, in one row. What is chosen is in the url of the page. */

import { type ReactNode, useId, useRef } from 'react';
import { Button } from './Button.tsx';
import { classes } from './classes.ts';
import { ChevronDown, X } from './icons.tsx';

export interface Option {
  readonly value: string;
  readonly label?: string;
}

const pill = (isSet: boolean) =>
  classes(
    'inline-flex h-7.5 max-w-full min-w-0 items-center rounded-md border text-[13px] transition-colors focus-within:outline-2 focus-within:outline-accent',
    isSet
      ? 'border-accent/40 bg-accent-soft text-accent-text'
      : 'border-line-strong bg-surface hover:bg-hover',
  );
const pillLabel = (isSet: boolean) =>
  classes('shrink-0 pl-2.5', isSet ? 'text-accent-text' : 'text-muted');

/** `clear` is present while a filter is set. */
export function Filters({
  label,
  clear,
  children,
}: {
  /** What is narrowed down: `Filter jobs`. */
  label: string;
  clear: (() => void) | undefined;
  children: ReactNode;
}) {
  return (
    <search aria-label={label} className="flex flex-wrap items-center gap-2">
      {children}
      {clear && (
        <Button look="quiet" size="small" icon={<X />} onClick={clear}>
          Clear
        </Button>
      )}
    </search>
  );
}

/** One of some values, or any. */
export function FilterSelect({
  label,
  value,
  onValue,
  options,
}: {
  label: string;
  value: string | undefined;
  onValue: (value: string | undefined) => void;
  options: readonly Option[];
}) {
  const id = useId();
  const isSet = value !== undefined;
  const isKnown = !isSet || options.some((option) => option.value === value);
  return (
    <span className={classes(pill(isSet), 'relative')}>
      <label htmlFor={id} className={pillLabel(isSet)}>
        {label}
      </label>
      <select
        id={id}
        value={value ?? ''}
        onChange={(event) => onValue(event.target.value || undefined)}
        className="field-sizing-content h-full max-w-60 min-w-0 cursor-pointer appearance-none truncate rounded-md bg-transparent pr-7 pl-1.5 font-medium outline-none [&>option]:bg-surface [&>option]:text-ink"
      >
        <option value="">any</option>
        {!isKnown && <option value={value}>{value}</option>}
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label ?? option.value}
          </option>
        ))}
      </select>
      <ChevronDown
        className="pointer-events-none absolute right-2 size-3.5 opacity-70"
        aria-hidden
      />
    </span>
  );
}

/** Exactly this text; it counts once it is entered or left. */
export function FilterText({
  label,
  value,
  onValue,
  placeholder = 'any',
}: {
  label: string;
  value: string | undefined;
  onValue: (value: string | undefined) => void;
  placeholder?: string;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const isSet = value !== undefined;
  const take = () => {
    const text = input.current?.value.trim() || undefined;
    if (text !== value) onValue(text);
  };
  return (
    <form
      className={pill(isSet)}
      onSubmit={(event) => {
        event.preventDefault();
        take();
      }}
    >
      <label htmlFor={id} className={pillLabel(isSet)}>
        {label}
      </label>
      <input
        // Follows a reset from elsewhere.
        key={value ?? ''}
        ref={input}
        id={id}
        defaultValue={value ?? ''}
        placeholder={placeholder}
        onBlur={take}
        className="h-full w-32 min-w-0 rounded-md bg-transparent px-1.5 font-medium outline-none placeholder:font-normal"
      />
    </form>
  );
}

/** A filter that came with a link: it can only be taken away. */
export function FilterChip({
  label,
  value,
  onClear,
}: {
  label: string;
  value: string;
  onClear: () => void;
}) {
  return (
    <span className={pill(true)}>
      <span className={pillLabel(true)}>{label}</span>
      <span className="max-w-40 truncate px-1.5 font-mono text-xs" title={value}>
        {value}
      </span>
      <button
        type="button"
        aria-label={`Clear ${label.toLowerCase()}`}
        onClick={onClear}
        className="flex h-full items-center rounded-md pr-2 pl-0.5 hover:text-ink"
      >
        <X className="size-3.5" aria-hidden />
      </button>
    </span>
  );
}
