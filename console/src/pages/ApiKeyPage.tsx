import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { apiKeysQuery, stateOf } from '../api/api-keys.ts';
import type { Schema } from '../api/client.ts';
import { live } from '../api/queries.ts';
import { RevokeKey } from '../api-keys/RevokeKey.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { useSession } from '../shell/session.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { Id } from '../ui/Id.tsx';
import { Ban } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { Tags } from '../ui/Tags.tsx';
import { countText, Time, useNow } from '../ui/Time.tsx';
import { Usage } from '../usage/Usage.tsx';

const route = getRouteApi('/shell/api-keys/$keyId');
const list = { label: 'API keys', to: '/api-keys' };

export function ApiKeyPage() {
  return (
    <AdministratorOnly title="API key">
      <ApiKey />
    </AdministratorOnly>
  );
}

function ApiKey() {
  const { keyId } = route.useParams();
  const now = useNow();
  const [isRevoking, setRevoking] = useState(false);
  const query = useQuery({ ...apiKeysQuery(), refetchInterval: live });
  const apiKey = query.data?.find(({ id }) => id === keyId);
  return (
    <Page
      title={apiKey?.client_name ?? 'API key'}
      parent={list}
      about={apiKey && <Status value={stateOf(apiKey, now)} />}
      actions={
        apiKey?.enabled && (
          <Button look="danger" icon={<Ban />} onClick={() => setRevoking(true)}>
            Revoke
          </Button>
        )
      }
    >
      <Loaded query={query}>
        {() =>
          apiKey === undefined ? (
            <Section>
              <Empty
                title="API key not found"
                action={<ButtonLink to="/api-keys">All API keys</ButtonLink>}
              />
            </Section>
          ) : (
            <>
              <Section title="About">
                <KeyFacts apiKey={apiKey} />
              </Section>
              <Usage owner={{ kind: 'api_key', id: apiKey.id }} noun="a job of this key" />
            </>
          )
        }
      </Loaded>
      {apiKey && isRevoking && <RevokeKey apiKey={apiKey} onClose={() => setRevoking(false)} />}
    </Page>
  );
}

function KeyFacts({ apiKey }: { apiKey: Schema<'ApiKey'> }) {
  const { id, organization_id, scopes, rate_limit, max_concurrency, created_at, expires_at } =
    apiKey;
  const session = useSession();
  return (
    <Facts
      facts={[
        ['Id', <Id key="id" value={id} label="id" />],
        ['Organization', organization_id],
        ['Scopes', scopes.includes('*') ? 'Everything' : <Tags key="scopes" values={scopes} />],
        ['Limit', `${countText(rate_limit)} requests a minute`],
        ['Runs at a time', max_concurrency === undefined ? 'no limit' : countText(max_concurrency)],
        ['Created', <Time key="created" value={created_at} />],
        [
          'Jobs',
          // The list of jobs is that of the organization in view.
          organization_id === session.organization_id ? (
            <Link key="jobs" to="/jobs" search={{ api_key_id: id }} className={textLink}>
              Jobs of this key
            </Link>
          ) : (
            `Switch to ${organization_id} to see them`
          ),
        ],
        ['Expires', expires_at === null ? 'never' : <Time key="expires" value={expires_at} />],
      ]}
    />
  );
}
