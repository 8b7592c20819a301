import { useState } from 'react';
import { changeWebhook, createWebhook, type EventType, type Webhook } from '../api/webhooks.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, TextField } from '../ui/Field.tsx';
import { AgentField } from '../ui/Pickers.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';
import { useAct } from '../ui/useAct.ts';
import { EventsField } from './EventsField.tsx';
import { FormFrame } from './FormFrame.tsx';
import { SecretField } from './SecretField.tsx';

const allAgents = [{ value: '*', label: 'All agents' }];

/** Creates a webhook and shows its secret once, or changes the given one. */
export function WebhookForm({
  webhook,
  onClose,
  onMade,
}: {
  webhook?: Webhook;
  onClose: () => void;
  onMade?: (id: string) => void;
}) {
  const [agentId, setAgentId] = useState(webhook?.agent_id ?? 'default');
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [events, setEvents] = useState<EventType[]>(
    webhook?.events ?? ['skill.completed', 'skill.failed'],
  );
  const [secret, setSecret] = useState('');
  const saving = useAct({
    async act() {
      if (webhook) {
        await changeWebhook(webhook.id, { url, events });
        return null;
      }
      const own = secret === '' ? {} : { secret };
      return createWebhook({ agent_id: agentId, url, events, ...own });
    },
    done: webhook ? 'The webhook is changed' : 'Webhook created',
    changes: [['webhooks']],
    quiet: true,
    isSecret: true,
  });
  const submit = () =>
    saving.mutate(undefined, { onSuccess: (created) => created === null && onClose() });
  const made = saving.data;
  if (made) {
    return (
      <SecretOnce
        title="Webhook created"
        description={url}
        label="Signing secret"
        value={made.secret}
        lost="Without it, you have to rotate the secret of the webhook."
        onClose={() => {
          saving.reset();
          onClose();
          onMade?.(made.id);
        }}
      >
        <p className="text-[13px] leading-relaxed text-muted">
          Set it in the receiver, which verifies deliveries with it. If it is lost, rotate the
          secret on the page of the webhook.
        </p>
      </SecretOnce>
    );
  }
  const { error } = saving;
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title={webhook ? 'Edit webhook' : 'New webhook'}
      description="An https endpoint of yours that gets the events of an agent, or of all agents."
    >
      <FormFrame
        verb={webhook ? 'Save' : 'Create webhook'}
        busy={saving.isPending}
        error={error}
        fields={['agent_id', 'url', 'events', 'secret']}
        onSubmit={submit}
        onCancel={onClose}
      >
        <TextField
          label="URL"
          error={issueOf(error, 'url')}
          hint={webhook && 'A new one counts from the next attempt on.'}
          type="url"
          inputMode="url"
          placeholder="https://example.com/hooks/skillwright"
          value={url}
          onValue={setUrl}
        />
        {!webhook && (
          <AgentField
            value={agentId}
            onValue={setAgentId}
            error={issueOf(error, 'agent_id')}
            others={allAgents}
          />
        )}
        <EventsField
          value={events}
          onValue={setEvents}
          isOfAll={agentId === '*'}
          error={issueOf(error, 'events')}
        />
        {!webhook && (
          <SecretField
            label="Secret"
            error={issueOf(error, 'secret')}
            hint="If empty, the platform generates one."
            value={secret}
            onValue={setSecret}
          />
        )}
      </FormFrame>
    </Dialog>
  );
}
