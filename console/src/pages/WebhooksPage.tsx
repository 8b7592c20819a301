import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { live } from '../api/queries.ts';
import { type Webhook, webhooksQuery } from '../api/webhooks.ts';
import { WebhookForm } from '../forms/WebhookForm.tsx';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Plus, Send } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Status, Tag } from '../ui/Status.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { useCreating } from '../ui/useCreating.ts';
import { healthOf } from '../webhooks/health.ts';

export function WebhooksPage() {
  const [isCreating, setCreating] = useCreating();
  const navigate = useNavigate();
  const query = useQuery({ ...webhooksQuery(), refetchInterval: live });
  const create = (
    <Button look="primary" icon={<Plus />} onClick={() => setCreating(true)}>
      New webhook
    </Button>
  );
  return (
    <Page title="Webhooks" actions={create}>
      <Section flush>
        <Loaded query={query}>
          {(webhooks) => (
            <Table
              caption="Webhooks"
              rows={webhooks}
              rowKey={({ id }) => id}
              columns={[
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
              ]}
              empty={
                <Empty icon={<Send />} title="No webhooks yet" action={create}>
                  A webhook is an https endpoint of yours that gets events, such as a failed run:
                  signed, retried, and with a log of every attempt.
                </Empty>
              }
            />
          )}
        </Loaded>
      </Section>
      {isCreating && (
        <WebhookForm
          onClose={() => setCreating(false)}
          onMade={(id) => void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } })}
        />
      )}
    </Page>
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
