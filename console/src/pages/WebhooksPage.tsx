import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { live } from '../api/queries.ts';
import { type Webhook, webhooksQuery } from '../api/webhooks.ts';
import { WebhookForm } from '../forms/WebhookForm.tsx';
import { classes } from '../ui/classes.ts';
import { Send } from '../ui/icons.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { Status, Tag } from '../ui/Status.tsx';
import { type Column, rowLink } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { healthOf } from '../webhooks/health.ts';

const columns: readonly Column<Webhook>[] = [
  { header: 'URL', grows: true, cell: (one) => <Url webhook={one} /> },
  { header: 'Agent', from: 'md', cell: ({ agent_id }) => agent_id },
  { header: 'Events', from: 'lg', cell: ({ events }) => <Events events={events} /> },
  {
    header: 'Health',
    cell: (one) => {
      const { label, tone } = healthOf(one);
      return (
        <Status value="health" tone={tone}>
          {label}
        </Status>
      );
    },
  },
  {
    header: 'Last delivery',
    from: 'sm',
    align: 'right',
    cell: ({ last_delivery_at }) => <Time value={last_delivery_at} />,
  },
];

export function WebhooksPage() {
  const navigate = useNavigate();
  const query = useQuery({
    ...webhooksQuery(),
    refetchInterval: live,
    select: (data) => ({ data }),
  });
  return (
    <ListPage
      title="Webhooks"
      query={query}
      columns={columns}
      rowKey={({ id }) => id}
      add="New webhook"
      form={(close) => (
        <WebhookForm
          onClose={close}
          onMade={(id) => void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } })}
        />
      )}
      icon={<Send />}
      none="No webhooks yet"
      about="A webhook is an https endpoint of yours that gets events, such as a failed run: signed, retried, and with a log of every attempt."
    />
  );
}

function Url({ webhook: { id, url, agent_id } }: { webhook: Webhook }) {
  return (
    <>
      <Link
        to="/webhooks/$webhookId"
        params={{ webhookId: id }}
        className={classes(rowLink, 'block truncate')}
        title={url}
      >
        {url.replace('https://', '')}
      </Link>
      <span className="block truncate text-xs text-muted md:hidden">{agent_id}</span>
    </>
  );
}

const shownEvents = 2;

function Events({ events }: { events: Webhook['events'] }) {
  return (
    <span className="flex items-center gap-1" title={events.join(', ')}>
      {events.slice(0, shownEvents).map((event) => (
        <Tag key={event}>{event}</Tag>
      ))}
      {events.length > shownEvents && (
        <span className="text-xs text-muted">+{events.length - shownEvents}</span>
      )}
    </span>
  );
}
