import { useQuery } from '@tanstack/react-query';
import { AccountActs, AccountStatus } from '../accounts/AccountSection.tsx';
import { type Account, accountsQuery } from '../api/accounts.ts';
import { UserKey } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { type Column, Table } from '../ui/Table.tsx';

/** The organization's accounts at servers outside that ask a person to log in. */
export function AccountsPage() {
  const query = useQuery(accountsQuery());
  return (
    <Page title="Accounts">
      <Section flush>
        <Loaded query={query}>
          {({ data }) => (
            <Table
              caption="Accounts"
              columns={columns}
              rows={data}
              rowKey={({ server }) => server}
              empty={
                <Empty icon={<UserKey />} title="No server asks for an account">
                  Some outside servers ask a person to log in. The organization connects an account
                  here then, and its runs use it.
                </Empty>
              }
            />
          )}
        </Loaded>
      </Section>
    </Page>
  );
}

const columns: readonly Column<Account>[] = [
  { header: 'Server', cell: ({ server }) => <span className="font-medium">{server}</span> },
  { header: 'State', cell: ({ status }) => <AccountStatus status={status} /> },
  {
    header: 'About',
    from: 'md',
    grows: true,
    cell: ({ fault, issuer, url }) => fault ?? issuer ?? url,
  },
  {
    header: 'Actions',
    align: 'right',
    isHeaderHidden: true,
    cell: (account) => (
      <span className="inline-flex items-center justify-end gap-1">
        <AccountActs account={account} isShort />
      </span>
    ),
  },
];
