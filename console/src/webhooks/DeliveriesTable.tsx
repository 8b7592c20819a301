import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { deliveriesQuery, type WebhookDelivery } from '../api/webhooks.ts';
import { Empty } from '../ui/Loading.tsx';
import { PagedTable } from '../ui/PagedTable.tsx';
import { pageSize } from '../ui/Pagination.tsx';
import { Nothing, Status, Tag } from '../ui/Status.tsx';
import { type Column, rowLink } from '../ui/Table.tsx';
import { countText, Time } from '../ui/Time.tsx';

/** Sent and pending deliveries; each opens with `delivery` in the url. */
export function DeliveriesTable({
  webhookId,
  page,
  onPage,
}: {
  webhookId: string;
  page: number;
  onPage: (page: number) => void;
}) {
  const query = useQuery(deliveriesQuery(webhookId, pageSize, (page - 1) * pageSize));
  return (
    <PagedTable
      title="Deliveries"
      query={query}
      page={page}
      onPage={onPage}
      columns={columnsOf(webhookId)}
      rowKey={({ id }) => id}
      empty={
        <Empty title="No deliveries yet">
          Deliveries of the agent’s events are listed here. Send a test to check the receiver.
        </Empty>
      }
    />
  );
}

const columnsOf = (webhookId: string): readonly Column<WebhookDelivery>[] => [
  { header: 'Event', cell: (one) => <Event webhookId={webhookId} delivery={one} /> },
  { header: 'Status', cell: ({ status }) => <Status value={status} /> },
  {
    header: 'Last answer',
    from: 'md',
    grows: true,
    cell: ({ attempts }) => <Answer attempt={attempts.at(-1)} />,
  },
  {
    header: 'Attempts',
    from: 'sm',
    align: 'right',
    cell: ({ attempts }) => countText(attempts.length),
  },
  {
    header: 'Next attempt',
    from: 'md',
    align: 'right',
    cell: ({ next_attempt_at }) => <Time value={next_attempt_at} />,
  },
  { header: 'When', align: 'right', cell: ({ created_at }) => <Time value={created_at} /> },
];

function Event({ webhookId, delivery }: { webhookId: string; delivery: WebhookDelivery }) {
  return (
    <span className="flex items-center gap-2">
      <Link
        to="/webhooks/$webhookId"
        params={{ webhookId }}
        search={(before) => ({ ...before, delivery: delivery.id })}
        resetScroll={false}
        className={rowLink}
      >
        {delivery.event}
      </Link>
      <span className="flex gap-1 max-sm:hidden">
        {delivery.test && <Tag>test</Tag>}
        {delivery.redelivery_of !== null && <Tag>again</Tag>}
      </span>
    </span>
  );
}

function Answer({ attempt }: { attempt: WebhookDelivery['attempts'][number] | undefined }) {
  if (attempt === undefined) return <Nothing />;
  const { status, error } = attempt;
  return (
    <span className="text-muted" title={error ?? undefined}>
      {status !== null && <span className="text-ink tabular-nums">{status}</span>}
      {status !== null && error !== null && ' · '}
      {error}
    </span>
  );
}
