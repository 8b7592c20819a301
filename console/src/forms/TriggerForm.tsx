import { useState } from 'react';
import {
  type CreatedTrigger,
  changeTrigger,
  createTrigger,
  type Trigger,
} from '../api/triggers.ts';
import { useMissingScopes } from '../shell/session.ts';
import { CallCommand } from '../triggers/CallCommand.tsx';
import { callUrl } from '../triggers/curl.ts';
import { Choice } from '../ui/Choice.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, NumberField, TextAreaField, TextField } from '../ui/Field.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { AgentField, SkillField, skillIssueOf, skillNameOf, skillPath } from '../ui/Pickers.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { numberOf } from './numbers.ts';
import { ObjectField } from './ObjectField.tsx';
import { PriorityField, priorityOf } from './PriorityField.tsx';
import { SecretField } from './SecretField.tsx';
import { useInput } from './useInput.ts';

const shown = [
  ...['name', 'agent_id', 'skill_category', 'skill_name', 'skill_version'],
  ...['mapping', 'event', 'input', 'priority', 'rate_limit', 'signing_secret'],
];

/** Creates a trigger and shows its url once, or changes the given one. */
export function TriggerForm({
  trigger,
  onClose,
  onMade,
}: {
  trigger?: Trigger;
  onClose: () => void;
  onMade?: (id: string) => void;
}) {
  const [name, setName] = useState(trigger?.name ?? '');
  const [agentId, setAgentId] = useState(trigger?.agent_id ?? 'default');
  const [skill, setSkill] = useState(trigger ? skillPath(trigger) : 'agent/v1.0/handle-event');
  const [target, setTarget] = useState<Target>(trigger?.event ? 'event' : 'run');
  const [event, setEvent] = useState(trigger?.event?.name ?? '');
  const [keyMapping, setKeyMapping] = useState(trigger?.event?.key_mapping ?? '');
  const [mapping, setMapping] = useState(trigger?.mapping ?? '');
  const input = useInput({}, trigger?.input);
  const [priority, setPriority] = useState<string>(trigger?.priority ?? '');
  const [limit, setLimit] = useState(String(trigger?.rate_limit ?? ''));
  const [secret, setSecret] = useState('');
  const missing = useMissingScopes(['events']);
  const [isUnsigned, setUnsigned] = useState(false);
  const saving = useAct({
    async act() {
      const fields = {
        name,
        agent_id: agentId,
        ...(target === 'run'
          ? { ...skillNameOf(skill), event: null }
          : { event: { name: event, key_mapping: keyMapping.trim() === '' ? null : keyMapping } }),
        mapping: mapping.trim() === '' ? null : mapping,
        // A value that is not an object is refused with the platform's message.
        input: input.value as Record<string, unknown>,
        priority: priorityOf(priority),
        // Empty is null: the platform's default.
        rate_limit: numberOf(limit),
        ...(isUnsigned ? { signing_secret: null } : secret !== '' && { signing_secret: secret }),
      };
      if (!trigger) return createTrigger(fields);
      await changeTrigger(trigger.id, fields);
      return null;
    },
    done: trigger ? 'The trigger is changed' : 'Trigger created',
    changes: [['triggers']],
    quiet: true,
    isSecret: true,
  });
  function submit() {
    if (input.fault !== undefined) return;
    saving.mutate(undefined, { onSuccess: (created) => created === null && onClose() });
  }
  const made = saving.data;
  if (made) {
    return (
      <Made
        trigger={made}
        onClose={() => {
          saving.reset();
          onClose();
          onMade?.(made.id);
        }}
      />
    );
  }
  const { error } = saving;
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      wide
      title={trigger ? 'Edit trigger' : 'New trigger'}
      description="An address that external systems call to start runs, or to tell runs that wait."
    >
      <FormFrame
        verb={trigger ? 'Save' : 'Create trigger'}
        busy={saving.isPending}
        error={error}
        fields={shown}
        onSubmit={submit}
        onCancel={onClose}
      >
        <TextField
          label="Name"
          error={issueOf(error, 'name')}
          hint="Its jobs show this as their user."
          placeholder="Pushes to the handbook"
          value={name}
          onValue={setName}
        />
        <div>
          <Choice label="A call" value={target} choices={targets} onValue={setTarget} />
        </div>
        {target === 'event' && missing.length > 0 && (
          <NeedsScope scopes={missing} act="A trigger that sends an event" />
        )}
        {target === 'event' && (
          <EventFields
            name={event}
            onName={setEvent}
            keyMapping={keyMapping}
            onKeyMapping={setKeyMapping}
            error={error}
          />
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          {target === 'run' && (
            <SkillField value={skill} onValue={setSkill} error={skillIssueOf(error)} />
          )}
          <AgentField value={agentId} onValue={setAgentId} error={issueOf(error, 'agent_id')} />
        </div>
        <TextAreaField
          label="Mapping"
          optional
          error={issueOf(error, 'mapping')}
          hint={
            <>
              JSONata that makes {target === 'run' ? 'the skill’s input' : 'the event’s data'} of{' '}
              <code className="font-mono">body</code>, <code className="font-mono">headers</code>{' '}
              and <code className="font-mono">query</code>. Without one, it is the body.
            </>
          }
          rows={3}
          spellCheck={false}
          className="font-mono text-xs"
          placeholder='{"text": $join(body.commits.message, "\n")}'
          value={mapping}
          onValue={setMapping}
        />
        {target === 'run' && (
          <ObjectField
            label="Input"
            hint="Default values for fields that the mapping does not set."
            rows={3}
            value={input.text}
            onValue={input.write}
            error={input.fault ?? issueOf(error, 'input')}
          />
        )}
        {target === 'run' && (
          <div className="grid gap-4 sm:grid-cols-2">
            <PriorityField
              none="the agent’s"
              value={priority}
              onValue={setPriority}
              error={error}
            />
          </div>
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <NumberField
            label="Calls per minute"
            optional
            error={issueOf(error, 'rate_limit')}
            hint="Further calls are refused. Empty is 60, or the limit of its key where that is smaller."
            placeholder="60"
            value={limit}
            onValue={setLimit}
          />
          <div className="flex flex-col gap-2">
            <SecretField
              label="Signing secret"
              error={issueOf(error, 'signing_secret')}
              hint={
                trigger?.has_signing_secret
                  ? 'Leave it empty to keep the one it has.'
                  : 'With one, calls that are not signed with it are refused.'
              }
              disabled={isUnsigned}
              value={isUnsigned ? '' : secret}
              onValue={setSecret}
            />
            {trigger?.has_signing_secret && (
              <label className="flex cursor-pointer items-center gap-2.5 text-[13px]">
                <input
                  type="checkbox"
                  className="size-4 shrink-0 accent-accent"
                  checked={isUnsigned}
                  onChange={({ target }) => setUnsigned(target.checked)}
                />
                Remove it: calls need no signature
              </label>
            )}
          </div>
        </div>
      </FormFrame>
    </Dialog>
  );
}

type Target = 'run' | 'event';

const targets = [
  { value: 'run', label: 'Starts a run' },
  { value: 'event', label: 'Sends an event' },
] as const;

/** What a call tells runs that wait. */
function EventFields({
  name,
  onName,
  keyMapping,
  onKeyMapping,
  error,
}: {
  name: string;
  onName: (name: string) => void;
  keyMapping: string;
  onKeyMapping: (mapping: string) => void;
  error: unknown;
}) {
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Event"
        error={issueOf(error, 'event')}
        hint="Runs that wait for it get it: ctx.waitForEvent."
        placeholder="order.paid"
        value={name}
        onValue={onName}
        className="font-mono text-[13px]"
      />
      <TextField
        label="Key"
        optional
        hint="JSONata that makes the event’s key. Without one, it has none."
        placeholder="body.order_id"
        spellCheck={false}
        value={keyMapping}
        onValue={onKeyMapping}
        className="font-mono text-[13px]"
      />
    </div>
  );
}

function Made({ trigger, onClose }: { trigger: CreatedTrigger; onClose: () => void }) {
  const url = callUrl(trigger.url);
  return (
    <SecretOnce
      title="Trigger created"
      description={trigger.name}
      wide
      label="URL"
      value={url}
      lost="Without it, you have to create another trigger."
      onClose={onClose}
    >
      <p className="text-[13px] leading-relaxed text-muted">
        Every client that knows it can call the trigger, so keep it secret like a key. If it is
        lost, create another trigger.
      </p>
      <div>
        <p className="mb-1.5 text-[13px] font-medium">Try it</p>
        <CallCommand trigger={trigger} url={url} />
      </div>
    </SecretOnce>
  );
}
