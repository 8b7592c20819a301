/** A form for any JSON Schema. It is large, so pages load it when they show it. */
// Not from its index, which also imports test utilities and with them a schema compiler.
import Form from '@rjsf/core/lib/components/Form.js';
import { type ErrorSchema, englishStringTranslator, TranslatableString } from '@rjsf/utils';
import { useEffect, useMemo, useRef } from 'react';
import { eitherText, type JsonSchema } from '../skills/schema.ts';
import { formSchema } from './form-schema.ts';
import { JsonField } from './JsonField.tsx';
import { templates } from './templates.tsx';
import { validator } from './validator.ts';
import { widgets } from './widgets.tsx';

/** What the platform found wrong, by dotted path. */
export type Issues = readonly { readonly field: string; readonly issue: string }[];

const fields = { json: JsonField };
/** Fills in no value that the user did not enter, except values that a choice determines. */
const behaviour = {
  emptyObjectFields: 'populateRequiredDefaults',
  arrayMinItems: { populate: 'requiredOnly' },
  requiredBooleanDefault: 'skip',
} as const;

/** A new entry begins empty. */
const translated: typeof englishStringTranslator = (text, params) =>
  text === TranslatableString.NewStringDefault ? '' : englishStringTranslator(text, params);

/** `prefix` keeps the ids of its fields distinct from those of another form. */
export function SchemaForm({
  schema,
  value,
  onValue,
  issues = [],
  prefix = 'input',
}: {
  schema: JsonSchema;
  value: unknown;
  /** `isByForm`: on display the form fills in values that its schema determines. */
  onValue: (value: unknown, isByForm: boolean) => void;
  issues?: Issues;
  prefix?: string;
}) {
  const made = useMemo(() => formSchema(schema), [schema]);
  const errors = useMemo(() => errorSchema(issues), [issues]);
  const either = eitherText(schema);
  const hasAppeared = useRef(false);
  useEffect(() => {
    hasAppeared.current = true;
  }, []);
  return (
    <>
      {either && <p className="mb-4 text-[13px] text-muted">{either}</p>}
      <Form
        // It is a part of a form, which sends it.
        tagName="div"
        idPrefix={prefix}
        schema={made.schema}
        uiSchema={made.uiSchema}
        validator={validator}
        formData={value}
        onChange={({ formData }) => onValue(formData, !hasAppeared.current)}
        extraErrors={errors}
        noValidate
        noHtml5Validate
        showErrorList={false}
        fields={fields}
        widgets={widgets}
        templates={templates}
        experimental_defaultFormStateBehavior={behaviour}
        translateString={translated}
      />
    </>
  );
}

/** Issues as the form library wants them: each at its place in a tree. */
function errorSchema(issues: Issues): ErrorSchema {
  const root: ErrorSchema = {};
  for (const { field, issue } of issues) {
    let at = root as Record<string, unknown>;
    for (const part of field === 'body' ? [] : field.split('.')) {
      at[part] ??= {};
      at = at[part] as Record<string, unknown>;
    }
    at['__errors'] = [...((at['__errors'] as string[] | undefined) ?? []), issue];
  }
  return root;
}
