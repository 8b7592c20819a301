import type { ReactNode } from 'react';

/** One of several ways to choose from, with a hint below. */
export function RadioOption({
  group,
  label,
  hint,
  checked,
  onChoose,
}: {
  /** The name that the options of a choice share. */
  group: string;
  label: ReactNode;
  hint: string;
  checked: boolean;
  onChoose: () => void;
}) {
  return (
    <label className="flex items-baseline gap-2 text-[13px]">
      <input
        type="radio"
        name={group}
        className="accent-accent"
        checked={checked}
        onChange={onChoose}
      />
      <span>
        {label}
        <span className="block text-xs text-muted">{hint}</span>
      </span>
    </label>
  );
}
