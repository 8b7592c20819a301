import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type Account,
  accountsQuery,
  beginAuthorization,
  disconnectAccount,
} from '../api/accounts.ts';
import { useMissingScopes, useSession } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Menu } from '../ui/Menu.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Facts, Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

const tones = {
  connected: 'good',
  needs_authorization: 'warn',
  not_connected: 'neutral',
} as const;

export const AccountStatus = ({ status }: Pick<Account, 'status'>) => (
  <Status value={status} tone={tones[status]} />
);

/** The organization's account at a server; nothing where the server asks for none. */
export function AccountSection({ server }: { server: string }) {
  const { organization_id } = useSession();
  const { data } = useQuery(accountsQuery());
  const account = data?.data.find((one) => one.server === server);
  if (account === undefined) return null;
  return (
    <Section title={`Account of ${organization_id}`} actions={<AccountActs account={account} />}>
      <Facts
        facts={[
          ['State', <AccountStatus key="state" status={account.status} />],
          account.fault !== null && ['Why', account.fault],
          account.issuer !== null && ['Granted by', account.issuer],
          account.scope !== null && ['Scopes', account.scope],
          account.connected_at !== null && [
            'Connected',
            <Time key="connected" value={account.connected_at} />,
          ],
          account.expires_at !== null && [
            'Next token',
            <Time key="expires" value={account.expires_at} />,
          ],
        ]}
      />
    </Section>
  );
}

/** Connects and disconnects an account. */
export function AccountActs({ account, isShort = false }: { account: Account; isShort?: boolean }) {
  const { organization_id } = useSession();
  const missing = useMissingScopes([account.category]);
  const [isLeaving, setLeaving] = useState(false);
  const { server, status } = account;
  const connect = useAct({
    async act() {
      const { authorization_url: url } = await beginAuthorization(server);
      location.assign(url);
    },
    failed: `The account at ${server} was not connected`,
    changes: [],
  });
  const disconnect = useAct({
    act: () => disconnectAccount(server),
    done: `The account at ${server} is disconnected`,
    changes: [['accounts'], ['mcp-servers']],
    quiet: true,
  });
  const again = { label: 'Connect again', act: () => connect.mutate() };
  const leave = { label: 'Disconnect', isDanger: true, act: () => setLeaving(true) };
  const isConnected = status === 'connected';
  if (missing.length > 0) return <NeedsScope scopes={missing} act="Changing the account" />;
  return (
    <>
      {(!isConnected || !isShort) && (
        <Button
          size="small"
          look={isConnected ? 'secondary' : 'primary'}
          busy={connect.isPending || connect.isSuccess}
          onClick={again.act}
        >
          {status === 'not_connected' ? 'Connect' : again.label}
        </Button>
      )}
      {status !== 'not_connected' && (
        <Menu
          label={`More for the account at ${server}`}
          items={isConnected && isShort ? [again, leave] : [leave]}
        />
      )}
      <Confirm
        open={isLeaving}
        onClose={() => setLeaving(false)}
        title={`Disconnect the account at ${server}?`}
        verb="Disconnect"
        act={() => disconnect.mutateAsync()}
      >
        Its tokens are deleted, and revoked where the server offers that. Runs of {organization_id}{' '}
        that use {server} fail until an account is connected again.
      </Confirm>
    </>
  );
}
