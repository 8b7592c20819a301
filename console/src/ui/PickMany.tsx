import { Combobox } from '@base-ui/react/combobox';
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react';
import { Field } from './Field.tsx';
import { Check, Plus, X } from './icons.tsx';

/** An option and its description. */
export interface Choice {
  readonly value: string;
  readonly about?: string;
}

/** How many choices are shown at once; typing brings the others. */
const shownMax = 60;

/**
 * A field to select several options and to type others. The props that `Field` gives its control go to the
 * text input.
 */
function PickMany({
  values,
  onValues,
  choices,
  placeholder,
  ...control
}: {
  values: readonly string[];
  onValues: (values: string[]) => void;
  choices: readonly Choice[];
  placeholder: string;
  id?: string;
  'aria-describedby'?: string | undefined;
  'aria-invalid'?: true | undefined;
}) {
  const [text, setText] = useState('');
  const typed = text.trim();
  const found = matching(choices, typed.toLowerCase());
  const isKnown = typed === '' || [...values, ...choices.map(({ value }) => value)].includes(typed);
  /** Until the list is gone from the page, which is a frame or more after it closed. */
  const isListThere = useRef(false);
  /** Escape closes the list alone. Without this, a list that is just closing would pass it to the dialog around. */
  function onKeyDown(event: KeyboardEvent) {
    const isClosing = isListThere.current && event.currentTarget.ariaExpanded === 'false';
    if (event.key === 'Escape' && isClosing) event.stopPropagation();
  }
  const known = new Map(choices.map((choice) => [choice.value, choice]));
  const items = [
    ...found.slice(0, shownMax).map(({ value }) => value),
    ...(isKnown ? [] : [typed]),
  ];
  return (
    <Combobox.Root
      multiple
      items={items}
      filter={null}
      value={[...values]}
      onValueChange={(next: string[], { reason }) => {
        // Escape closes only the list; the selection stays.
        if (reason === 'escape-key') return;
        onValues(next);
        setText('');
      }}
      onOpenChange={(isOpen) => {
        if (isOpen) isListThere.current = true;
      }}
      onOpenChangeComplete={(isOpen) => {
        isListThere.current = isOpen;
      }}
      inputValue={text}
      onInputValueChange={setText}
      autoHighlight
    >
      <Combobox.InputGroup className="w-full min-w-0 rounded-md border border-line-strong bg-surface transition-colors hover:border-muted has-[input:focus-visible]:outline-2 has-[input:focus-visible]:outline-offset-2 has-[input:focus-visible]:outline-accent">
        <Combobox.Chips className="flex min-h-8.5 flex-wrap items-center gap-1 p-1">
          {values.map((value) => (
            <Combobox.Chip
              key={value}
              className="inline-flex h-6 items-center gap-0.5 rounded bg-sunken pl-1.5 font-mono text-xs ring-1 ring-line ring-inset data-highlighted:bg-accent-soft"
            >
              {value}
              <Combobox.ChipRemove
                aria-label={`Remove ${value}`}
                className="inline-flex size-6 items-center justify-center rounded text-muted hover:text-ink [&_svg]:size-3"
              >
                <X aria-hidden />
              </Combobox.ChipRemove>
            </Combobox.Chip>
          ))}
          <Combobox.Input
            {...control}
            onKeyDown={onKeyDown}
            placeholder={placeholder}
            className="h-6 min-w-32 grow bg-transparent px-1.5 outline-none"
          />
        </Combobox.Chips>
      </Combobox.InputGroup>
      <Combobox.Portal>
        <Combobox.Positioner sideOffset={4} align="start" className="z-60">
          <Combobox.Popup className="max-h-72 w-(--anchor-width) overflow-y-auto rounded-lg border bg-surface p-1 shadow-high outline-none">
            <Combobox.List className="empty:hidden">
              {(value: string) => (
                <Combobox.Item
                  key={value}
                  value={value}
                  className="flex cursor-pointer items-start gap-2 rounded-md px-2 py-1.5 text-[13px] outline-none select-none data-highlighted:bg-hover"
                >
                  <span className="mt-0.5 size-4 shrink-0 text-accent-text [&_svg]:size-4">
                    {!known.has(value) && !values.includes(value) ? (
                      <Plus aria-hidden />
                    ) : (
                      <Combobox.ItemIndicator>
                        <Check aria-hidden />
                      </Combobox.ItemIndicator>
                    )}
                  </span>
                  <span className="min-w-0">
                    <span className="block font-mono text-xs leading-5 break-all">{value}</span>
                    <span className="block text-xs text-muted">
                      {known.get(value)?.about ?? (known.has(value) ? '' : 'As it is typed')}
                    </span>
                  </span>
                </Combobox.Item>
              )}
            </Combobox.List>
            <Combobox.Empty className="px-2 py-1.5 text-[13px] text-muted empty:hidden">
              {choices.length === 0 ? 'Type to add one.' : 'All are selected. Type to add others.'}
            </Combobox.Empty>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  );
}

/** `PickMany` with what a `Field` has. */
export function PickManyField({
  label,
  hint,
  error,
  optional = false,
  placeholder,
  ...picked
}: {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  optional?: boolean;
  values: readonly string[];
  onValues: (values: string[]) => void;
  choices: readonly Choice[];
  /** While nothing is chosen. */
  placeholder: string;
}) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional}>
      {(control) => (
        <PickMany
          {...control}
          {...picked}
          placeholder={picked.values.length === 0 ? placeholder : 'Add…'}
        />
      )}
    </Field>
  );
}

/** The options that contain the text: first by prefix, then by name. */
function matching(choices: readonly Choice[], text: string): Choice[] {
  const rank = ({ value, about = '' }: Choice) => {
    const at = value.toLowerCase().indexOf(text);
    if (at >= 0) return Math.min(at, 1);
    return about.toLowerCase().includes(text) ? 2 : 3;
  };
  return choices.filter((choice) => rank(choice) < 3).sort((a, b) => rank(a) - rank(b));
}
