import { classes } from './classes.ts';

/** One of a few, all of them in sight. */
export function Choice<Value extends string>({
  label,
  value,
  choices,
  onValue,
}: {
  label: string;
  value: Value;
  choices: readonly { readonly value: Value; readonly label: string }[];
  onValue: (value: Value) => void;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot stand within a line of a header
    <div role="group" aria-label={label} className="inline-flex rounded-md border bg-sunken p-0.5">
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onValue(choice.value)}
          className={classes(
            'h-6 rounded px-2.5 text-[13px] font-medium whitespace-nowrap transition-colors',
            choice.value === value
              ? 'bg-accent-soft text-accent-text'
              : 'text-muted hover:text-ink',
          )}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}
