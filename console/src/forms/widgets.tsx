/** The controls of a form that is made from a schema. */
import {
  ADDITIONAL_PROPERTY_FLAG,
  type BaseInputTemplateProps,
  type RegistryWidgetsType,
  type WidgetProps,
} from '@rjsf/utils';
import { Input, Select, Switch, TextArea } from '../ui/Field.tsx';
import { aboutId, hintOf } from './hints.ts';

/** Common attributes of controls: a name if there is no label, hint and error. */
function common({ id, label, hideLabel, schema, rawErrors, disabled, readonly }: WidgetProps) {
  const isWrong = (rawErrors?.length ?? 0) > 0;
  return {
    id,
    disabled: Boolean(disabled || readonly),
    // One of any name has a field for that name beside it instead of a label.
    ...(hideLabel || ADDITIONAL_PROPERTY_FLAG in schema ? { 'aria-label': label } : {}),
    ...(isWrong || hintOf(schema) !== undefined ? { 'aria-describedby': aboutId(id) } : {}),
    ...(isWrong ? { 'aria-invalid': true as const } : {}),
  };
}

/** The value of an empty field. */
const placeholderOf = ({ options, placeholder }: WidgetProps): string | undefined => {
  const standard = options['standard'];
  if (standard === undefined) return placeholder || undefined;
  return typeof standard === 'string' ? standard : JSON.stringify(standard);
};

/** Emptied is left out, not an empty text. */
const given = (text: string) => (text === '' ? undefined : text);

function TextareaWidget(props: WidgetProps) {
  const { value, onChange, options } = props;
  return (
    <TextArea
      {...common(props)}
      rows={options['isLong'] ? 3 : 1}
      className="field-sizing-content max-h-96 min-h-8.5 resize-none py-1.5! leading-snug!"
      placeholder={placeholderOf(props)}
      value={typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)}
      onChange={({ target }) => onChange(given(target.value))}
    />
  );
}

/** For numbers, dates and other single-line values. */
export function BaseInput(props: BaseInputTemplateProps) {
  const { value, onChange, onChangeOverride, schema, type } = props;
  const isNumber = schema.type === 'number' || schema.type === 'integer';
  return (
    <Input
      {...common(props)}
      type={isNumber ? 'number' : (type ?? 'text')}
      step={isNumber ? (schema.type === 'integer' ? 1 : 'any') : undefined}
      className={isNumber ? 'max-w-48 tabular-nums' : ''}
      placeholder={placeholderOf(props)}
      value={value ?? ''}
      onChange={onChangeOverride ?? (({ target }) => onChange(given(target.value)))}
    />
  );
}

function SelectWidget(props: WidgetProps) {
  const { id, label, value, onChange, options } = props;
  const choices = options.enumOptions ?? [];
  const chosen = choices.findIndex((choice) => same(choice.value, value));
  const standard = options['standard'];
  // The selection of a oneOf option has no label of its own, and no empty choice.
  const isKind = /__(?:one|any)of_select$/.test(id);
  return (
    <Select
      {...common(props)}
      {...(isKind ? { 'aria-label': `Kind of ${label}` } : {})}
      className="max-w-72"
      value={chosen === -1 ? '' : String(chosen)}
      onChange={({ target }) =>
        onChange(target.value === '' ? undefined : choices[Number(target.value)]?.value)
      }
    >
      {!isKind && (
        <option value="">
          {standard !== undefined
            ? `Default: ${textOf(standard)}`
            : options['isRequired']
              ? 'Choose…'
              : 'Not given'}
        </option>
      )}
      {choices.map((choice, i) => (
        <option key={choice.label} value={i}>
          {choice.label}
        </option>
      ))}
    </Select>
  );
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Yes, no, or absent without a default. */
function ChoiceWidget({ options, ...props }: WidgetProps) {
  const enumOptions = [
    { value: true, label: 'Yes' },
    { value: false, label: 'No' },
  ];
  return <SelectWidget {...props} options={{ ...options, enumOptions }} />;
}

/** Shows the default until the user changes it. */
function SwitchWidget(props: WidgetProps) {
  const { value, onChange, options, label } = props;
  const standard = options['standard'] === true;
  const checked = typeof value === 'boolean' ? value : standard;
  const { 'aria-label': _, ...rest } = common(props);
  return (
    <Switch
      {...rest}
      label={label}
      checked={checked}
      onCheckedChange={(next) => onChange(next === standard ? undefined : next)}
    />
  );
}

export const widgets: RegistryWidgetsType = {
  TextareaWidget,
  SelectWidget,
  choice: ChoiceWidget,
  switch: SwitchWidget,
};
