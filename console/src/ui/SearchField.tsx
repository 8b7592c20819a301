import { useEffect, useState } from 'react';
import { classes } from './classes.ts';
import { Input } from './Field.tsx';
import { Search } from './icons.tsx';

/** Pause in typing before a search. */
const pauseMs = 250;

/** A search field that searches while typing. `value` is in the url. */
export function SearchField({
  label,
  value,
  onValue,
  suggestions,
  className,
}: {
  label: string;
  value: string;
  onValue: (value: string) => void;
  /** What one could mean, to be chosen from. */
  suggestions?: readonly string[];
  className?: string;
}) {
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => {
    if (typed === null) return;
    const timer = setTimeout(() => {
      if (typed !== value) onValue(typed);
      setTyped(null);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [typed, value, onValue]);
  const list = suggestions && `${label.replaceAll(/\W/g, '-')}-suggestions`;
  return (
    <div className={classes('relative', className)}>
      <Search
        className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-muted"
        aria-hidden
      />
      <Input
        type="search"
        aria-label={label}
        placeholder={label}
        className="pl-8.5"
        value={typed ?? value}
        onChange={(event) => setTyped(event.target.value)}
        {...(list && { list })}
      />
      {list && (
        <datalist id={list}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </div>
  );
}
