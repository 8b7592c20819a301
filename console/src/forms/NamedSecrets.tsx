import { useId } from 'react';
import { Button, IconButton } from '../ui/Button.tsx';
import { Input, issueOf } from '../ui/Field.tsx';
import { Plus, X } from '../ui/icons.tsx';

/** A value that is stored encrypted: an empty one keeps what is stored under its name. */
export interface NamedSecret {
  /** Tells rows apart. */
  readonly id: number;
  readonly name: string;
  readonly value: string;
  readonly isStored: boolean;
}

let made = 0;
export const newSecret = (name = '', isStored = false): NamedSecret => {
  made += 1;
  return { id: made, name, value: '', isStored };
};

/** As the API takes them: null keeps the stored value. */
export const secretValues = (secrets: readonly NamedSecret[]): Record<string, string | null> =>
  Object.fromEntries(
    secrets
      .filter(({ name }) => name.trim() !== '')
      .map(({ name, value, isStored }) => [name.trim(), value === '' && isStored ? null : value]),
  );

/** Names with values that are never shown again, such as headers. */
export function NamedSecrets({
  label,
  one,
  hint,
  field,
  error,
  secrets,
  onSecrets,
}: {
  label: string;
  /** What one of them is called: `header`. */
  one: string;
  hint: string;
  field: string;
  error: unknown;
  secrets: readonly NamedSecret[];
  onSecrets: (secrets: readonly NamedSecret[]) => void;
}) {
  const about = useId();
  const issue = issueOf(error, field);
  const set = (id: number, change: Partial<NamedSecret>) =>
    onSecrets(secrets.map((secret) => (secret.id === id ? { ...secret, ...change } : secret)));
  return (
    <fieldset className="flex min-w-0 flex-col gap-1.5" aria-describedby={about}>
      <legend className="mb-1.5 text-[13px] font-medium">{label}</legend>
      {secrets.map(({ id, name, value, isStored }, i) => (
        <div key={id} className="flex items-center gap-2">
          <Input
            aria-label={`Name of ${one} ${i + 1}`}
            value={name}
            onChange={({ target }) => set(id, { name: target.value, isStored: false })}
            placeholder="name"
            autoComplete="off"
            className="font-mono text-[13px]"
          />
          <Input
            aria-label={`Value of ${one} ${i + 1}`}
            type="password"
            value={value}
            onChange={({ target }) => set(id, { value: target.value })}
            placeholder={isStored ? 'stored' : 'value'}
            autoComplete="off"
            className="font-mono text-[13px]"
          />
          <IconButton
            label={`Remove ${one} ${i + 1}`}
            icon={<X />}
            onClick={() => onSecrets(secrets.filter((secret) => secret.id !== id))}
          />
        </div>
      ))}
      <div>
        <Button size="small" icon={<Plus />} onClick={() => onSecrets([...secrets, newSecret()])}>
          Add {one}
        </Button>
      </div>
      <div id={about} className="text-xs leading-relaxed text-muted">
        {issue && (
          <p role="alert" className="text-bad-text">
            {issue}
          </p>
        )}
        {hint}
      </div>
    </fieldset>
  );
}
