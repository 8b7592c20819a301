import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { live } from '../api/queries.ts';
import { webhooksQuery } from '../api/webhooks.ts';
import { Loaded } from '../ui/Loading.tsx';
import { Enabled, Status } from '../ui/Status.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { Quiet } from './Quiet.tsx';

export function WebhooksInTrouble() {
  const query = useQuery({ ...webhooksQuery(), refetchInterval: live });
  return (
    <Loaded query={query} lines={2}>
      {(webhooks) => (
        <Table
          caption="Failing webhooks"
          rows={webhooks.filter(
            ({ failing, consecutive_failures: failures }) => failing || failures > 0,
          )}
          rowKey={({ id }) => id}
          columns={[
            {
              header: 'Address',
              grows: true,
              cell: ({ id, url }) => (
                <Link to="/webhooks/$webhookId" params={{ webhookId: id }} className={rowLink}>
                  {url}
                </Link>
              ),
            },
            {
              header: 'Failures in a row',
              align: 'right',
              from: 'sm',
              cell: ({ consecutive_failures }) => countText(consecutive_failures),
            },
            {
              header: 'Last delivery',
              align: 'right',
              from: 'sm',
              cell: ({ last_delivery_at }) => <Time value={last_delivery_at} />,
            },
            {
              header: 'State',
              cell: ({ active }) => (active ? <Status value="failing" /> : <Enabled is={false} />),
            },
          ]}
          empty={
            <Quiet>
              {webhooks.length === 0 ? 'There are no webhooks.' : 'No failing webhooks.'}
            </Quiet>
          }
        />
      )}
    </Loaded>
  );
}
