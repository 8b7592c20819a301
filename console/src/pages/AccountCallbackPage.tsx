import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { completeAuthorization } from '../api/accounts.ts';
import { returned } from '../api/returned.ts';
import { useIsAdministrator } from '../shell/session.ts';
import { ButtonLink } from '../ui/Button.tsx';
import { CircleCheck } from '../ui/icons.tsx';
import { Empty, Problem, Skeleton } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';

const route = getRouteApi('/shell/oauth/callback/$server');
const names = ['code', 'iss', 'error', 'error_description'] as const;

/** Where an authorization server sends the browser back to: completes the connection of an account. */
export function AccountCallbackPage() {
  const { server } = route.useParams();
  const isAdministrator = useIsAdministrator();
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ['account-callback', server],
    // A code is good for one use.
    ...{ retry: false, staleTime: Number.POSITIVE_INFINITY, refetchOnWindowFocus: false },
    async queryFn() {
      const { state } = returned ?? {};
      if (state === undefined) {
        throw new Error('Nothing was sent back: begin again under Accounts');
      }
      const given = Object.fromEntries(
        names.flatMap((name) => (returned?.[name] ? [[name, returned[name]]] : [])),
      );
      const account = await completeAuthorization(server, { state, ...given });
      void client.invalidateQueries({ queryKey: ['accounts'] });
      void client.invalidateQueries({ queryKey: ['mcp-servers'] });
      void client.invalidateQueries({ queryKey: ['skills'] });
      return account;
    },
  });
  return (
    <Page title={`Account at ${server}`}>
      <Section>
        {query.isPending && <Skeleton lines={3} />}
        {query.error && (
          <div className="flex flex-col items-start gap-4">
            <Problem error={query.error} />
            <ButtonLink to="/accounts">Accounts</ButtonLink>
          </div>
        )}
        {query.data && (
          <Empty
            icon={<CircleCheck />}
            title="The account is connected"
            action={
              <span className="flex gap-2">
                <ButtonLink to="/accounts">Accounts</ButtonLink>
                {isAdministrator && (
                  <ButtonLink to="/mcp-servers/$name" params={{ name: server }} look="primary">
                    Server
                  </ButtonLink>
                )}
              </span>
            }
          >
            Granted by {query.data.issuer}
            {query.data.scope === null ? '' : `, with the scopes ${query.data.scope}`}.
          </Empty>
        )}
      </Section>
    </Page>
  );
}
