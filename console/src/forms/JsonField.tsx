import { ADDITIONAL_PROPERTY_FLAG, type FieldProps } from '@rjsf/utils';
import { useState } from 'react';
import { TextArea } from '../ui/Field.tsx';
import { aboutId, hintOf } from './hints.ts';
import { FieldFrame } from './templates.tsx';

/** A field for values of any shape: JSON, or else a text. */
export function JsonField(props: FieldProps) {
  const { fieldPathId, formData, schema, name, required, rawErrors, onChange, uiSchema } = props;
  const [text, setText] = useState(() =>
    formData === undefined
      ? ''
      : typeof formData === 'string' && !isJson(formData)
        ? formData
        : JSON.stringify(formData, null, 2),
  );
  const id = fieldPathId.$id;
  const options = (uiSchema?.['ui:options'] ?? {}) as Record<string, unknown>;
  const label = schema.title ?? (name || 'Input');
  const isLabelled = uiSchema?.['ui:label'] !== false && !(ADDITIONAL_PROPERTY_FLAG in schema);
  function write(next: string) {
    setText(next);
    onChange(read(next), fieldPathId.path, undefined, id);
  }
  return (
    <FieldFrame
      id={id}
      label={isLabelled ? label : undefined}
      isOptional={!required}
      hint={hintOf(schema)}
      errors={rawErrors}
      beside={<span className="text-xs text-muted">JSON</span>}
    >
      <TextArea
        id={id}
        rows={3}
        spellCheck={false}
        className="field-sizing-content max-h-96 resize-none font-mono text-xs"
        aria-describedby={aboutId(id)}
        aria-invalid={rawErrors?.length ? true : undefined}
        placeholder={options['standard'] === undefined ? '' : JSON.stringify(options['standard'])}
        value={text}
        onChange={({ target }) => write(target.value)}
        {...(isLabelled ? {} : { 'aria-label': name })}
      />
      {text.trim() !== '' && !isJson(text) && (
        <p className="text-xs text-warn-text">This is not JSON, so it is sent as a text.</p>
      )}
    </FieldFrame>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function read(text: string): unknown {
  if (text.trim() === '') return undefined;
  return isJson(text) ? (JSON.parse(text) as unknown) : text;
}
