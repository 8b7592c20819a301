/** How the model of an agent is called. */
import { issueOf, NumberField, SelectField } from '../ui/Field.tsx';
import type { ModelSettings, SettingTexts } from './model-settings.ts';

/** Complete by its type, in the order of their strength. */
const efforts: Record<NonNullable<ModelSettings['effort']>, true> = {
  none: true,
  minimal: true,
  low: true,
  medium: true,
  high: true,
  xhigh: true,
  max: true,
};
const effortOptions = [
  { value: '', label: 'the provider’s' },
  ...Object.keys(efforts).map((value) => ({ value })),
];

interface Fields {
  readonly values: SettingTexts;
  readonly onValues: (values: SettingTexts) => void;
  readonly error: unknown;
}

/** One below the other in a narrow place, such as beside a chat. */
export function ModelSettingsFields({ values, onValues, error }: Fields) {
  const bind = (name: keyof ModelSettings) => ({
    error: issueOf(error, `model_settings.${name}`),
    value: values[name] ?? '',
    onValue: (value: string) => onValues({ ...values, [name]: value }),
  });
  const { error: effortIssue, value: effort, onValue: setEffort } = bind('effort');
  return (
    <div className="@container">
      <div className="grid gap-4 @sm:grid-cols-2 @3xl:grid-cols-3">
        <NumberField
          label="Longest answer (tokens)"
          hint="16 to 1,000,000, at most half of the context."
          placeholder="the platform’s"
          {...bind('max_output_tokens')}
        />
        <NumberField
          label="Context (tokens)"
          hint="2,000 to 10,000,000."
          placeholder="the platform’s"
          {...bind('context_tokens')}
        />
        <NumberField
          label="Temperature"
          hint="0 to 2. Some models refuse it."
          placeholder="the provider’s"
          inputMode="decimal"
          {...bind('temperature')}
        />
        <SelectField
          label="Effort"
          hint="How much the model reasons. Some models refuse it."
          error={effortIssue}
          value={effort}
          options={effortOptions}
          onValue={setEffort}
        />
        <NumberField
          label="Longest call (ms)"
          hint="To the end of the answer: 100 to 21,600,000 (6 hours)."
          placeholder="no limit"
          {...bind('timeout_ms')}
        />
        <NumberField
          label="Longest wait (ms)"
          hint="To the first byte of the answer: 100 to 3,600,000 (1 hour)."
          placeholder="the platform’s"
          {...bind('first_byte_timeout_ms')}
        />
        <NumberField
          label="Wait for a provider (s)"
          hint="While it limits the rate or is unavailable: 0 to 86,400 (1 day)."
          placeholder="3,600"
          {...bind('wait_for_provider')}
        />
      </div>
    </div>
  );
}
