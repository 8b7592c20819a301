import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import {
  changeWebhook,
  deleteWebhook,
  deliveriesQuery,
  testWebhook,
  type Webhook,
  webhookQuery,
} from '../api/webhooks.ts';
import { RotateSecret } from '../forms/RotateSecret.tsx';
import { WebhookForm } from '../forms/WebhookForm.tsx';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { KeyRound, Pencil, Send, Trash2 } from '../ui/icons.tsx';
import { AgentLink } from '../ui/Links.tsx';
import { Menu } from '../ui/Menu.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { pageSize } from '../ui/Pagination.tsx';
import { Pending } from '../ui/Pending.tsx';
import { Status, Tag } from '../ui/Status.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { useDeleting } from '../ui/useDeleting.ts';
import { DeliveriesTable } from '../webhooks/DeliveriesTable.tsx';
import { DeliveryDialog } from '../webhooks/DeliveryDialog.tsx';
import { useMissingToRead } from '../webhooks/event-scopes.ts';
import { healthOf } from '../webhooks/health.ts';

const route = getRouteApi('/shell/webhooks/$webhookId');
const parent = { label: 'Webhooks', to: '/webhooks' };

export function WebhookPage() {
  const { webhookId } = route.useParams();
  const { delivery, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(webhookQuery(webhookId));
  const latest = useQuery(deliveriesQuery(webhookId, pageSize, 0));
  const open = (id: string | null) =>
    void navigate({
      search: ({ delivery: _, ...rest }) => (id === null ? rest : { ...rest, delivery: id }),
      resetScroll: false,
    });
  if (query.data === undefined) {
    return (
      <Page title="Webhook" parent={parent}>
        <Pending query={query} />
      </Page>
    );
  }
  const webhook = query.data;
  const health = healthOf(webhook, latest.data?.data);
  return (
    <Page
      title={webhook.url.replace('https://', '')}
      about={
        <Status value="health" tone={health.tone}>
          {health.label}
        </Status>
      }
      parent={parent}
      actions={<Acts webhook={webhook} />}
    >
      <Section>
        <p className="mb-4">{health.words}</p>
        <Facts
          facts={[
            ['URL', webhook.url],
            ['Agent', <AgentLink key="agent" id={webhook.agent_id} />],
            [
              'Events',
              <span key="events" className="flex flex-wrap gap-1">
                {webhook.events.map((event) => (
                  <Tag key={event}>{event}</Tag>
                ))}
              </span>,
            ],
            ['Last delivery', <Time key="last" value={webhook.last_delivery_at} />],
            ['Made', <Time key="made" value={webhook.created_at} />],
          ]}
        />
      </Section>
      <DeliveriesTable
        webhookId={webhookId}
        page={page}
        onPage={(next) => void navigate({ search: (before) => ({ ...before, page: next }) })}
      />
      {delivery !== undefined && (
        <DeliveryDialog
          webhookId={webhookId}
          deliveryId={delivery}
          isEnabled={webhook.active}
          onClose={() => open(null)}
          onOpen={open}
        />
      )}
    </Page>
  );
}

function Acts({ webhook }: { webhook: Webhook }) {
  const { id, active, events } = webhook;
  const missing = useMissingToRead()(events);
  const mayChange = missing.length === 0;
  const [open, setOpen] = useState<'edit' | 'rotate' | 'disable' | 'delete' | null>(null);
  const close = () => setOpen(null);
  const testing = useAct({
    act: () => testWebhook(id),
    done: 'A test is sent',
    failed: 'No test was sent',
    changes: [['webhooks']],
  });
  const switching = useAct({
    act: (next: boolean) => changeWebhook(id, { active: next }),
    done: (next) => (next.active ? 'The webhook is enabled' : 'The webhook is disabled'),
    failed: 'The webhook was not changed',
    changes: [['webhooks']],
  });
  const deleting = useDeleting(() => deleteWebhook(id), 'webhook', '/webhooks', [['webhooks']]);
  return (
    <>
      {!mayChange && (
        <NeedsScope
          scopes={missing}
          act={active ? 'Changing it, except to disable it,' : 'Changing it'}
        />
      )}
      {active ? (
        <Button icon={<Send />} busy={testing.isPending} onClick={() => testing.mutate()}>
          Send test
        </Button>
      ) : (
        mayChange && (
          <Button look="primary" busy={switching.isPending} onClick={() => switching.mutate(true)}>
            Enable
          </Button>
        )
      )}
      {active && <Button onClick={() => setOpen('disable')}>Disable</Button>}
      <Menu
        label="More"
        items={[
          ...(mayChange
            ? [
                { label: 'Edit', icon: <Pencil />, act: () => setOpen('edit') },
                { label: 'Rotate secret', icon: <KeyRound />, act: () => setOpen('rotate') },
              ]
            : []),
          { label: 'Delete', icon: <Trash2 />, isDanger: true, act: () => setOpen('delete') },
        ]}
      />
      {open === 'edit' && <WebhookForm webhook={webhook} onClose={close} />}
      {open === 'rotate' && <RotateSecret webhookId={id} onClose={close} />}
      <Confirm
        open={open === 'disable'}
        onClose={close}
        title="Disable this webhook?"
        verb="Disable"
        act={() => switching.mutateAsync(false)}
      >
        Pending deliveries are cancelled. Events until it is enabled again are not sent later.
      </Confirm>
      <Confirm
        open={open === 'delete'}
        onClose={close}
        title="Delete this webhook?"
        verb="Delete"
        act={() => deleting.mutateAsync()}
      >
        Pending deliveries are not sent, and the log of its deliveries is deleted.
      </Confirm>
    </>
  );
}
