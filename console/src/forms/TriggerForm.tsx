import { useState } from 'react';
import {
  type CreatedTrigger,
  changeTrigger,
  createTrigger,
  type Trigger,
} from '../api/triggers.ts';
import { CallCommand } from '../triggers/CallCommand.tsx';
import { callUrl } from '../triggers/curl.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, NumberField, TextAreaField, TextField } from '../ui/Field.tsx';
import { AgentField, SkillField, skillIssueOf, skillNameOf, skillPath } from '../ui/Pickers.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { numberOf } from './numbers.ts';
import { ObjectField } from './ObjectField.tsx';
import { SecretField } from './SecretField.tsx';
import { useInput } from './useInput.ts';

const shown = [
  ...['name', 'agent_id', 'skill_category', 'skill_name', 'skill_version'],
  ...['mapping', 'input', 'rate_limit', 'signing_secret'],
];

const usualLimit = 60;

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
  const [mapping, setMapping] = useState(trigger?.mapping ?? '');
  const input = useInput({}, trigger?.input);
  const [limit, setLimit] = useState(String(trigger?.rate_limit ?? ''));
  const [secret, setSecret] = useState('');
  const [isUnsigned, setUnsigned] = useState(false);
  const saving = useAct({
    async act() {
      const rate = numberOf(limit) ?? usualLimit;
      const fields = {
        name,
        agent_id: agentId,
        ...skillNameOf(skill),
        mapping: mapping.trim() === '' ? null : mapping,
        // A value that is not an object is refused with the platform's message.
        input: input.value as Record<string, unknown>,
        rate_limit: rate,
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
      description="An address that external systems call to start runs."
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
        <div className="grid gap-4 sm:grid-cols-2">
          <SkillField value={skill} onValue={setSkill} error={skillIssueOf(error)} />
          <AgentField value={agentId} onValue={setAgentId} error={issueOf(error, 'agent_id')} />
        </div>
        <TextAreaField
          label="Mapping"
          optional
          error={issueOf(error, 'mapping')}
          hint={
            <>
              JSONata that makes the skill’s input of <code className="font-mono">body</code>,{' '}
              <code className="font-mono">headers</code> and{' '}
              <code className="font-mono">query</code>. Without one, the body is the input.
            </>
          }
          rows={3}
          spellCheck={false}
          className="font-mono text-xs"
          placeholder='{"text": $join(body.commits.message, "\n")}'
          value={mapping}
          onValue={setMapping}
        />
        <ObjectField
          label="Input"
          hint="Default values for fields that the mapping does not set."
          rows={3}
          value={input.text}
          onValue={input.write}
          error={input.fault ?? issueOf(error, 'input')}
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <NumberField
            label="Calls per minute"
            optional
            error={issueOf(error, 'rate_limit')}
            hint={`What comes beyond is refused. Empty is ${usualLimit}.`}
            placeholder={String(usualLimit)}
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
