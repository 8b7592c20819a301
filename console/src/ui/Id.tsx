import { CopyButton } from './Code.tsx';

/** An id, to be read and copied. */
export function Id({ value, label }: { value: string; label: string }) {
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1">
      <span className="truncate font-mono text-xs" title={value}>
        {value}
      </span>
      <CopyButton text={value} label={`Copy ${label}`} className="-my-1 size-6!" />
    </span>
  );
}
