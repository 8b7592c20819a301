/** How a form that is made from a schema is laid out. */
import {
  ADDITIONAL_PROPERTY_FLAG,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  canExpand,
  type FieldTemplateProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type TemplatesType,
} from '@rjsf/utils';
import type { ReactNode } from 'react';
import { Button, IconButton } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Input } from '../ui/Field.tsx';
import { ChevronDown, ChevronUp, Plus, X } from '../ui/icons.tsx';
import { Words } from '../ui/Words.tsx';
import { aboutId, hintOf } from './hints.ts';
import { BaseInput } from './widgets.tsx';

/** A label, the control, and its hint or error. */
export function FieldFrame({
  id,
  label,
  isOptional,
  hint,
  errors,
  beside,
  isGroup = false,
  children,
}: {
  id: string;
  label: string | undefined;
  isOptional: boolean;
  hint: string | undefined;
  errors: readonly string[] | undefined;
  beside?: ReactNode;
  /** Has several controls, so the label belongs to none of them. */
  isGroup?: boolean;
  children: ReactNode;
}) {
  const isWrong = errors !== undefined && errors.length > 0;
  const name = (
    <>
      {label}
      {isOptional && <span className="font-normal text-muted"> (optional)</span>}
    </>
  );
  return (
    <div className="flex min-w-0 grow flex-col gap-1.5">
      {label !== undefined && (
        <div className="flex items-baseline justify-between gap-2 text-[13px] font-medium">
          {isGroup ? <span>{name}</span> : <label htmlFor={id}>{name}</label>}
          {beside}
        </div>
      )}
      {children}
      {(isWrong || hint) && (
        <div
          id={aboutId(id)}
          className={classes('text-xs leading-relaxed', isWrong ? 'text-bad-text' : 'text-muted')}
        >
          {isWrong ? errors.join('; ') : hint && <Words text={hint} />}
        </div>
      )}
    </div>
  );
}

const isUnion = ({ schema, registry }: FieldTemplateProps): boolean =>
  Boolean(schema.anyOf ?? schema.oneOf) && !registry.schemaUtils.isSelect(schema);

function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, required, displayLabel, schema, rawErrors, uiSchema, hidden, children } =
    props;
  if (hidden) return <div hidden>{children}</div>;
  const isJson = uiSchema?.['ui:field'] === 'json';
  const isFrame = !isJson && schema.type !== 'object' && schema.type !== 'array';
  const isShown = displayLabel && !(ADDITIONAL_PROPERTY_FLAG in schema);
  const field = isFrame ? (
    <FieldFrame
      id={id}
      label={isShown ? label : undefined}
      isOptional={!required}
      hint={hintOf(schema)}
      errors={isUnion(props) ? undefined : rawErrors}
      isGroup={isUnion(props)}
    >
      {children}
    </FieldFrame>
  ) : (
    children
  );
  return ADDITIONAL_PROPERTY_FLAG in schema ? <Named {...props}>{field}</Named> : field;
}

/** One of the properties that may have any name. */
function Named({
  id,
  label,
  disabled,
  onKeyRenameBlur,
  onRemoveProperty,
  children,
}: FieldTemplateProps) {
  return (
    <div className="flex items-start gap-2">
      <Input
        aria-label={`Name of ${label}`}
        id={`${id}-key`}
        className="max-w-40 shrink-0 basis-2/5 font-mono text-xs"
        defaultValue={label}
        disabled={disabled}
        onBlur={onKeyRenameBlur}
      />
      {children}
      <IconButton label={`Remove ${label}`} icon={<X />} onClick={onRemoveProperty} />
    </div>
  );
}

function ObjectFieldTemplate(props: ObjectFieldTemplateProps) {
  const { title, properties, schema, uiSchema, formData, required, fieldPathId, onAddProperty } =
    props;
  const isUnionAlone = Boolean(schema.oneOf ?? schema.anyOf) && properties.length === 0;
  if (isUnionAlone) return null;
  const content = (
    <>
      {properties.map(({ name, content: property }) => (
        <div key={name}>{property}</div>
      ))}
      {canExpand(schema, uiSchema, formData) && (
        <div>
          <Button size="small" icon={<Plus />} onClick={onAddProperty}>
            Add {title ? `to ${title}` : 'a property'}
          </Button>
        </div>
      )}
    </>
  );
  if (fieldPathId.path.length === 0) return <div className="flex flex-col gap-5">{content}</div>;
  return (
    <Group title={title} schema={schema} isOptional={!required} {...errorsOf(props)}>
      {content}
    </Group>
  );
}

/** A part of a form with a name: a line at its side holds it together. */
function Group({
  title,
  schema,
  isOptional,
  errors,
  children,
}: {
  title: string;
  schema: object;
  isOptional: boolean;
  errors?: readonly string[];
  children: ReactNode;
}) {
  const hint = hintOf(schema);
  const isWrong = errors !== undefined && errors.length > 0;
  return (
    <fieldset className="min-w-0 grow">
      {title && (
        <legend className="text-[13px] font-medium">
          {title}
          {isOptional && <span className="font-normal text-muted"> (optional)</span>}
        </legend>
      )}
      {(hint || isWrong) && (
        <p className={classes('mt-1 text-xs', isWrong ? 'text-bad-text' : 'text-muted')}>
          {isWrong ? errors.join('; ') : hint && <Words text={hint} />}
        </p>
      )}
      <div className="mt-2 flex flex-col gap-3 border-l-2 pl-3">{children}</div>
    </fieldset>
  );
}

/** What is wrong with a list or an object as a whole. */
function errorsOf(props: { errorSchema?: unknown }): { errors?: readonly string[] } {
  const { rawErrors, errorSchema } = props as { rawErrors?: string[]; errorSchema?: unknown };
  const { __errors } = (errorSchema ?? {}) as { __errors?: string[] };
  const errors = rawErrors ?? __errors;
  return errors === undefined ? {} : { errors };
}

function ArrayFieldTemplate(props: ArrayFieldTemplateProps) {
  const { title, schema, required, items, canAdd, onAddClick } = props;
  return (
    <Group title={title} schema={schema} isOptional={!required} {...errorsOf(props)}>
      {items}
      {canAdd && (
        <div>
          <Button size="small" icon={<Plus />} onClick={onAddClick}>
            Add to {title}
          </Button>
        </div>
      )}
    </Group>
  );
}

function ArrayFieldItemTemplate({ children, buttonsProps, index }: ArrayFieldItemTemplateProps) {
  const { hasMoveUp, hasMoveDown, hasRemove, onMoveUpItem, onMoveDownItem, onRemoveItem } =
    buttonsProps;
  const n = index + 1;
  return (
    <div className="flex items-start gap-1">
      <div className="flex min-w-0 grow">{children}</div>
      {(hasMoveUp || hasMoveDown) && (
        <>
          <IconButton
            label={`Move item ${n} up`}
            icon={<ChevronUp />}
            disabled={!hasMoveUp}
            onClick={onMoveUpItem}
          />
          <IconButton
            label={`Move item ${n} down`}
            icon={<ChevronDown />}
            disabled={!hasMoveDown}
            onClick={onMoveDownItem}
          />
        </>
      )}
      {hasRemove && <IconButton label={`Remove item ${n}`} icon={<X />} onClick={onRemoveItem} />}
    </div>
  );
}

const MultiSchemaFieldTemplate = ({
  selector,
  optionSchemaField,
}: MultiSchemaFieldTemplateProps) => (
  <div className="flex min-w-0 flex-col gap-2">
    {selector}
    {optionSchemaField}
  </div>
);

export const templates: Partial<TemplatesType> = {
  FieldTemplate,
  ObjectFieldTemplate,
  ArrayFieldTemplate,
  ArrayFieldItemTemplate,
  MultiSchemaFieldTemplate,
  BaseInputTemplate: BaseInput,
  // These are within the frame of a field.
  DescriptionFieldTemplate: () => null,
  FieldErrorTemplate: () => null,
  FieldHelpTemplate: () => null,
};
