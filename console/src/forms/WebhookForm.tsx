import { useState } from 'react';
import { changeWebhook, createWebhook, type EventType, type Webhook } from '../api/webhooks.ts';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { Field, Input, issueOf } from '../ui/Field.tsx';
import { AgentField } from '../ui/Pickers.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';
import { useAct } from '../ui/useAct.ts';
import { EventsField } from './EventsField.tsx';
import { FormFrame } from './FormFrame.tsx';

/** Makes a webhook and shows its secret, once; or changes the one that is given. */
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
  const [made, setMade] = useState<{ id: string; secret: string } | null>(null);
  const saving = useAct({
    async act() {
      if (webhook) {
        await changeWebhook(webhook.id, { url, events });
        return null;
      }
      const own = secret === '' ? {} : { secret };
      return createWebhook({ agent_id: agentId, url, events, ...own });
    },
    done: webhook ? 'The webhook is changed' : 'The webhook is made',
    changes: [['webhooks']],
    quiet: true,
  });
  const submit = () =>
    saving.mutate(undefined, {
      onSuccess: (created) => (created === null ? onClose() : setMade(created)),
    });
  if (made !== null) {
    const leave = () => {
      onClose();
      onMade?.(made.id);
    };
    return (
      <Dialog open onClose={leave} title="The webhook is made" description={url}>
        <SecretOnce label="Signing secret" value={made.secret}>
          <p className="text-[13px] leading-relaxed text-muted">
            Give it to the receiver, which checks with it that a delivery comes from here. If it is
            lost, rotate the secret on the page of the webhook.
          </p>
        </SecretOnce>
        <div className="mt-5 flex justify-end">
          <Button look="primary" onClick={leave}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  }
  const { error } = saving;
  return (
    <Dialog
      open
      onClose={onClose}
      title={webhook ? 'Edit webhook' : 'New webhook'}
      description="An https endpoint of yours that is told what happens to an agent."
    >
      <FormFrame
        verb={webhook ? 'Save' : 'Create webhook'}
        busy={saving.isPending}
        error={error}
        fields={['agent_id', 'url', 'events', 'secret']}
        onSubmit={submit}
        onCancel={onClose}
      >
        <Field
          label="URL"
          error={issueOf(error, 'url')}
          hint={webhook && 'A new one counts from the next attempt on.'}
        >
          {(control) => (
            <Input
              {...control}
              type="url"
              inputMode="url"
              placeholder="https://example.com/hooks/skillwright"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          )}
        </Field>
        {!webhook && (
          <AgentField value={agentId} onValue={setAgentId} error={issueOf(error, 'agent_id')} />
        )}
        <EventsField value={events} onValue={setEvents} error={issueOf(error, 'events')} />
        {!webhook && (
          <Field
            label="Secret"
            optional
            error={issueOf(error, 'secret')}
            hint="Leave it empty, and one is made."
          >
            {(control) => (
              <Input
                {...control}
                className="font-mono"
                autoComplete="off"
                spellCheck={false}
                value={secret}
                onChange={(event) => setSecret(event.target.value)}
              />
            )}
          </Field>
        )}
      </FormFrame>
    </Dialog>
  );
}
