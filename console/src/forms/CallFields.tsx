import { issueOf, NumberField } from '../ui/Field.tsx';
import { type Choice, PickManyField } from '../ui/PickMany.tsx';

/** How calls of a service outside are made: their time, and which may be made again. */
export interface CallSettings {
  /** In seconds, as it is typed. */
  readonly seconds: string;
  readonly retried: readonly string[];
}

export const callSettings = (one: { timeout_ms: number } | null, retried: readonly string[]) => ({
  seconds: one === null ? '' : String(one.timeout_ms / 1_000),
  retried,
});

export const timeoutOf = ({ seconds }: CallSettings): { timeout_ms?: number } =>
  seconds.trim() === '' ? {} : { timeout_ms: Math.round(Number(seconds) * 1_000) };

export function CallFields({
  settings,
  onSettings,
  choices,
  what,
  hint,
  field,
  error,
}: {
  settings: CallSettings;
  onSettings: (settings: CallSettings) => void;
  choices: readonly Choice[];
  /** What a call calls: `tools`. */
  what: string;
  hint: string;
  /** Under which the retried ones are sent. */
  field: string;
  error: unknown;
}) {
  return (
    <>
      <PickManyField
        label={`Retried ${what}`}
        hint={hint}
        error={issueOf(error, field)}
        optional
        values={settings.retried}
        onValues={(retried) => onSettings({ ...settings, retried })}
        choices={choices}
        placeholder="Choose or type…"
      />
      <NumberField
        label="Seconds of one call"
        optional
        hint="If empty, 60."
        error={issueOf(error, 'timeout_ms')}
        placeholder="60"
        value={settings.seconds}
        onValue={(seconds) => onSettings({ ...settings, seconds })}
      />
    </>
  );
}
