import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { apiKeysQuery, stateOf } from '../api/api-keys.ts';
import type { Schema } from '../api/client.ts';
import { live } from '../api/queries.ts';
import { RevokeKey } from '../api-keys/RevokeKey.tsx';
import { NewApiKey } from '../forms/NewApiKey.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { FilterSelect, Filters } from '../ui/Filters.tsx';
import { Ban, KeyRound, Plus } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { SearchField } from '../ui/SearchField.tsx';
import { Status } from '../ui/Status.tsx';
import { aboveRowLink, type Column, rowLink, Table } from '../ui/Table.tsx';
import { Tags } from '../ui/Tags.tsx';
import { countText, Time, useNow } from '../ui/Time.tsx';
import { useCreating } from '../ui/useCreating.ts';
import { hasWords } from '../ui/words.ts';

type ApiKey = Schema<'ApiKey'>;

const route = getRouteApi('/shell/api-keys');
const states = ['enabled', 'expired', 'revoked'].map((value) => ({ value }));

export function ApiKeysPage() {
  return (
    <AdministratorOnly title="API keys">
      <ApiKeys />
    </AdministratorOnly>
  );
}

function ApiKeys() {
  const { q = '', state = '', page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const now = useNow();
  const [isCreating, setCreating] = useCreating();
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const query = useQuery({ ...apiKeysQuery(), refetchInterval: live });
  const filter = (next: { q?: string; state?: string; page?: number }, replace = false) => {
    const filters = { q, state, ...next };
    const search = Object.entries(filters).filter(([, value]) => value);
    void navigate({ search: Object.fromEntries(search), replace });
  };
  const clear = () => filter({ q: '', state: '' });
  const create = (
    <Button look="primary" icon={<Plus />} onClick={() => setCreating(true)}>
      New API key
    </Button>
  );
  return (
    <Page title="API keys" actions={create}>
      <Filters label="Filter API keys" clear={q || state ? clear : undefined}>
        <SearchField
          label="Search by name, organization, scope"
          value={q}
          onValue={(text) => filter({ q: text }, true)}
          className="min-w-48 grow"
        />
        <FilterSelect
          label="State"
          value={state || undefined}
          onValue={(next) => filter({ state: next ?? '' })}
          options={states}
        />
      </Filters>
      <Section flush>
        <Loaded query={query}>
          {(keys) => {
            const found = keys.filter((key) => matches(key, q, state, now));
            return (
              <>
                <Table
                  caption="API keys"
                  columns={columnsOf(now, setRevoking)}
                  rows={found.slice((page - 1) * pageSize, page * pageSize)}
                  rowKey={({ id }) => id}
                  empty={
                    keys.length > 0 ? (
                      <Empty
                        icon={<KeyRound />}
                        title="No matching API keys"
                        action={<Button onClick={clear}>Show all keys</Button>}
                      />
                    ) : (
                      <Empty icon={<KeyRound />} title="No API keys yet" action={create}>
                        Programs use the platform with a key, which limits what they may run and how
                        often. The first key of an organization creates it.
                      </Empty>
                    )
                  }
                />
                {found.length > 0 && (
                  <Pagination
                    page={page}
                    total={found.length}
                    onPage={(next) => filter({ page: next })}
                  />
                )}
              </>
            );
          }}
        </Loaded>
      </Section>
      {isCreating && <NewApiKey onClose={() => setCreating(false)} />}
      {revoking && <RevokeKey apiKey={revoking} onClose={() => setRevoking(null)} />}
    </Page>
  );
}

function matches(key: ApiKey, q: string, state: string, now: number): boolean {
  if (state !== '' && stateOf(key, now) !== state) return false;
  return hasWords([key.client_name, key.organization_id, ...key.scopes].join(' '), q);
}

const columnsOf = (now: number, onRevoke: (key: ApiKey) => void): readonly Column<ApiKey>[] => [
  {
    header: 'Name',
    grows: true,
    cell: ({ id, client_name }) => (
      <Link to="/api-keys/$keyId" params={{ keyId: id }} className={rowLink}>
        {client_name}
      </Link>
    ),
  },
  { header: 'State', cell: (key) => <Status value={stateOf(key, now)} /> },
  { header: 'Organization', from: 'sm', cell: ({ organization_id }) => organization_id },
  { header: 'Scopes', from: 'lg', cell: ({ scopes }) => <Tags values={scopes} most={3} /> },
  {
    header: 'Limit',
    align: 'right',
    from: 'lg',
    cell: ({ rate_limit }) => (
      <>
        {countText(rate_limit)} <span className="text-muted">/ min</span>
      </>
    ),
  },
  {
    header: 'Expires',
    align: 'right',
    from: 'md',
    cell: ({ expires_at }) =>
      expires_at === null ? <span className="text-muted">never</span> : <Time value={expires_at} />,
  },
  {
    header: 'Created',
    align: 'right',
    from: 'md',
    cell: ({ created_at }) => <Time value={created_at} />,
  },
  {
    header: 'Actions',
    isHeaderHidden: true,
    align: 'right',
    cell: (key) =>
      key.enabled && (
        <div className={classes(aboveRowLink, '-my-1.5 inline-flex')}>
          <Menu
            label={`What can be done with ${key.client_name}`}
            items={[{ label: 'Revoke', icon: <Ban />, isDanger: true, act: () => onRevoke(key) }]}
          />
        </div>
      ),
  },
];
