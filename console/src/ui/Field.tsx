import { Switch as BaseSwitch } from '@base-ui/react/switch';
import {
  type ComponentProps,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react';
import { ApiError } from '../api/client.ts';
import { classes } from './classes.ts';

const box =
  'w-full min-w-0 rounded-md border border-line-strong bg-surface px-2.5 text-ink transition-colors hover:border-muted aria-invalid:border-bad disabled:opacity-60';

interface Control {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': true | undefined;
}

interface Labelled {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly optional?: boolean;
}

/** A label, hint and error with the control, which gets its id. */
export function Field({
  label,
  hint,
  error,
  optional = false,
  children,
}: Labelled & { children: (control: Control) => ReactNode }) {
  const id = useId();
  const about = `${id}-about`;
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <label htmlFor={id} className="text-[13px] font-medium">
        {label}
        {optional && <span className="font-normal text-muted"> (optional)</span>}
      </label>
      {children({
        id,
        'aria-describedby': hint || error ? about : undefined,
        'aria-invalid': error === undefined ? undefined : true,
      })}
      {(hint || error) && (
        <div id={about} className="text-xs leading-relaxed text-muted">
          {error && (
            <p role="alert" className="text-bad-text">
              {error}
            </p>
          )}
          {hint}
        </div>
      )}
    </div>
  );
}

/** The platform's errors for one field, with their places in it. */
export function issueOf(error: unknown, field: string): string | undefined {
  const issues = issuesWithin(error, field).map(({ field: path, issue }) => {
    if (path === 'body') return issue;
    return /^\d+$/.test(path) ? `entry ${Number(path) + 1} ${issue}` : `${path} ${issue}`;
  });
  return issues.length === 0 ? undefined : issues.join('; ');
}

/** All that was found wrong within a field, by their paths in it; `body` is the field itself. */
export function issuesWithin(error: unknown, field: string): ApiError['details'] {
  if (!(error instanceof ApiError)) return [];
  return error.details.flatMap((one) => {
    if (one.field === field) return [{ ...one, field: 'body' }];
    if (!one.field.startsWith(`${field}.`)) return [];
    return [{ ...one, field: one.field.slice(field.length + 1) }];
  });
}

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return <input {...rest} className={classes(box, 'h-8.5', className)} />;
}

/** A text that is filled in. */
type Written<Attributes> = Labelled &
  Omit<Attributes, 'id' | 'onChange' | 'value'> & {
    readonly value: string;
    readonly onValue: (value: string) => void;
  };

/** A line to be filled in, with all that a `Field` has. */
export function TextField(props: Written<InputHTMLAttributes<HTMLInputElement>>) {
  const { label, hint, error, optional = false, onValue, ...rest } = props;
  return (
    <Field label={label} hint={hint} error={error} optional={optional}>
      {(control) => (
        <Input {...control} {...rest} onChange={({ target }) => onValue(target.value)} />
      )}
    </Field>
  );
}

/** Like `TextField`, for a number. The value stays a text, so that an invalid number is reported. */
export function NumberField(props: Written<InputHTMLAttributes<HTMLInputElement>>) {
  return <TextField inputMode="numeric" className="text-right tabular-nums" {...props} />;
}

/** As `TextField`, over several lines. */
export function TextAreaField(props: Written<TextareaHTMLAttributes<HTMLTextAreaElement>>) {
  const { label, hint, error, optional = false, onValue, ...rest } = props;
  return (
    <Field label={label} hint={hint} error={error} optional={optional}>
      {(control) => (
        <TextArea {...control} {...rest} onChange={({ target }) => onValue(target.value)} />
      )}
    </Field>
  );
}

export function TextArea({ className, ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <textarea rows={4} {...rest} className={classes(box, 'py-2 leading-relaxed', className)} />
  );
}

/** The browser's own: the best one on a phone and with a keyboard. */
export function Select({ className, children, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <select {...rest} className={classes(box, 'h-8.5 pr-8', className)}>
      {children}
    </select>
  );
}

/** A choice of one, with all that a `Field` has. */
export function SelectField<Value extends string>({
  label,
  hint,
  error,
  value,
  options,
  onValue,
}: Omit<Labelled, 'optional'> & {
  value: Value;
  options: readonly {
    readonly value: Value;
    readonly label?: string;
    readonly disabled?: boolean;
  }[];
  onValue: (value: Value) => void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <Select
          {...control}
          value={value}
          onChange={({ target }) => onValue(target.value as Value)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value} disabled={option.disabled}>
              {option.label ?? option.value}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

export function Switch({
  label,
  ...rest
}: { label: string } & ComponentProps<typeof BaseSwitch.Root>) {
  return (
    <BaseSwitch.Root
      aria-label={label}
      {...rest}
      className="inline-flex h-5 w-8.5 shrink-0 items-center rounded-full bg-line-strong p-0.5 transition-colors data-checked:bg-accent data-disabled:opacity-55"
    >
      <BaseSwitch.Thumb className="size-4 rounded-full bg-[white] shadow-low transition-transform data-checked:translate-x-3.5" />
    </BaseSwitch.Root>
  );
}
