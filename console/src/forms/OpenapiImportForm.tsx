import { useState } from 'react';
import {
  addOpenapiImport,
  changeOpenapiImport,
  type OpenapiImport,
  previewOpenapiImport,
} from '../api/openapi-imports.ts';
import { storedWords } from '../remote/words.ts';
import { useSession } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Choice } from '../ui/Choice.tsx';
import { Field, issueOf, TextAreaField, TextField } from '../ui/Field.tsx';
import { ListChecks } from '../ui/icons.tsx';
import { Problem } from '../ui/Loading.tsx';
import { type Choice as Operation, PickManyField } from '../ui/PickMany.tsx';
import { useAct } from '../ui/useAct.ts';
import { CallFields } from './CallFields.tsx';
import { FormDialog } from './FormDialog.tsx';
import { OpenapiAuthFields } from './OpenapiAuthFields.tsx';
import { OrganizationsField } from './OrganizationsField.tsx';
import {
  changeOf,
  choicesOf,
  draftOf,
  type OpenapiImportDraft,
  sourceOf,
} from './openapi-import.ts';

const fields = [
  ...[
    'name',
    'organizations',
    'url',
    'document',
    'base_url',
    'operations',
    'timeout_ms',
    'retried_operations',
  ],
  ...['auth.name', 'auth.value', 'auth.username', 'auth.password', 'auth.token_url'],
  ...['auth.client_id', 'auth.client_secret', 'auth.scope', 'auth.audience'],
];

export interface ImportPartProps {
  readonly draft: OpenapiImportDraft;
  readonly set: (change: Partial<OpenapiImportDraft>) => void;
  readonly error: unknown;
}

/** Imports an OpenAPI document, or changes the given import. */
export function OpenapiImportForm({
  one,
  onClose,
}: {
  one: OpenapiImport | null;
  onClose: () => void;
}) {
  const { organization_id: own } = useSession();
  const [draft, setDraft] = useState(() => draftOf(one, own));
  const [operations, setOperations] = useState<readonly Operation[]>([]);
  const set = (change: Partial<OpenapiImportDraft>) => setDraft({ ...draft, ...change });
  return (
    <FormDialog
      wide
      title={one === null ? 'Import an OpenAPI document' : `Edit ${one.name}`}
      description="Its operations become skills. Those of the first import are active at once."
      verb={one === null ? 'Import' : 'Save'}
      fields={fields}
      act={() =>
        one === null
          ? addOpenapiImport(draft.name, changeOf(draft))
          : changeOpenapiImport(one.name, changeOf(draft))
      }
      done={storedWords}
      changes={[['openapi-imports'], ['skills']]}
      onClose={onClose}
    >
      {(error) => {
        const part = { draft, set, error };
        return (
          <>
            {one === null && (
              <TextField
                label="Name"
                hint="Its skills have the category api-, followed by the name."
                error={issueOf(error, 'name')}
                required
                value={draft.name}
                onValue={(name) => set({ name })}
                placeholder="orders"
                autoComplete="off"
              />
            )}
            <DocumentFields {...part} hasStored={one !== null && one.url === null} />
            <TextField
              label="Base address"
              optional
              hint="Where the operations are. If empty, the first server of the document."
              error={issueOf(error, 'base_url')}
              type="url"
              value={draft.baseUrl}
              onValue={(baseUrl) => set({ baseUrl })}
              placeholder="https://orders.example.com/v2"
              className="font-mono text-[13px]"
            />
            <OpenapiAuthFields {...part} />
            <OrganizationsField
              values={draft.organizations}
              onValues={(organizations) => set({ organizations })}
              error={issueOf(error, 'organizations')}
            />
            <OperationFields
              {...part}
              name={one?.name}
              operations={operations}
              onOperations={setOperations}
            />
            <CallFields
              settings={draft.calls}
              onSettings={(calls) => set({ calls })}
              choices={operations}
              what="operations"
              hint="Called again after a failure although their method is POST or PATCH. Those with other methods are, in any case."
              field="retried_operations"
              error={error}
            />
          </>
        );
      }}
    </FormDialog>
  );
}

const ways = [
  { value: 'url', label: 'Address' },
  { value: 'file', label: 'File' },
  { value: 'text', label: 'Text' },
] as const;
const stored = { value: 'stored', label: 'As stored' } as const;

function DocumentFields({
  draft,
  set,
  error,
  hasStored,
}: ImportPartProps & { hasStored: boolean }) {
  const issue = issueOf(error, 'document');
  return (
    <>
      <div>
        <Choice
          label="Where the document is"
          value={draft.by}
          choices={hasStored ? [stored, ...ways] : ways}
          onValue={(by) => set({ by })}
        />
      </div>
      {draft.by === 'url' && (
        <TextField
          label="Address of the document"
          hint="Fetched now and at each refresh."
          error={issueOf(error, 'url')}
          required
          type="url"
          value={draft.url}
          onValue={(url) => set({ url })}
          placeholder="https://orders.example.com/openapi.json"
          className="font-mono text-[13px]"
        />
      )}
      {draft.by === 'file' && (
        <Field label="File" hint="JSON or YAML, up to 4 MiB." error={issue}>
          {(control) => (
            <input
              {...control}
              type="file"
              accept=".json,.yaml,.yml,application/json,application/yaml"
              className="text-[13px] file:mr-3 file:h-8.5 file:rounded-md file:border file:border-line-strong file:bg-surface file:px-3"
              onChange={async ({ target }) => {
                const file = target.files?.[0];
                if (file !== undefined) set({ document: await file.text(), fileName: file.name });
              }}
            />
          )}
        </Field>
      )}
      {draft.by === 'text' && (
        <TextAreaField
          label="Document"
          hint="JSON or YAML, up to 4 MiB."
          error={issue}
          rows={8}
          spellCheck={false}
          value={draft.document}
          onValue={(document) => set({ document })}
          className="font-mono text-xs"
        />
      )}
    </>
  );
}

/** All operations, or some of those that the document has. */
function OperationFields({
  draft,
  set,
  error,
  name,
  operations,
  onOperations,
}: ImportPartProps & {
  name: string | undefined;
  operations: readonly Operation[];
  onOperations: (operations: readonly Operation[]) => void;
}) {
  const reading = useAct({
    act: () => previewOpenapiImport({ ...sourceOf(draft), ...(name !== undefined && { name }) }),
    changes: [],
    quiet: true,
    isSecret: true,
  });
  const read = () =>
    reading.mutate(undefined, { onSuccess: (preview) => onOperations(choicesOf(preview)) });
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <Choice
          label="Operations"
          value={draft.isAll ? 'all' : 'some'}
          choices={[
            { value: 'all', label: 'All operations' },
            { value: 'some', label: 'Some' },
          ]}
          onValue={(value) => set({ isAll: value === 'all' })}
        />
        {!draft.isAll && (
          <Button size="small" icon={<ListChecks />} busy={reading.isPending} onClick={read}>
            List the operations
          </Button>
        )}
      </div>
      {!draft.isAll && (
        <PickManyField
          label="Chosen operations"
          hint={
            reading.data &&
            `The document has ${reading.data.total} operations. 500 can be skills at most.`
          }
          error={issueOf(error, 'operations')}
          values={draft.operations}
          onValues={(chosen) => set({ operations: chosen })}
          choices={operations}
          placeholder="GET /orders, or an operationId…"
        />
      )}
      {reading.error !== null && <Problem error={reading.error} />}
    </>
  );
}
