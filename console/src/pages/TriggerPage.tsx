import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { changeTrigger, deleteTrigger, type Trigger, triggerQuery } from '../api/triggers.ts';
import { TriggerForm } from '../forms/TriggerForm.tsx';
import { CallCommand } from '../triggers/CallCommand.tsx';
import { CallsTable } from '../triggers/CallsTable.tsx';
import { unknownToken, urlShape } from '../triggers/curl.ts';
import { useMissingToChange } from '../triggers/useMissingToChange.ts';
import { Button } from '../ui/Button.tsx';
import { CannotRun, WhyNot } from '../ui/CannotRun.tsx';
import { Code, Json } from '../ui/Code.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Pencil, Trash2 } from '../ui/icons.tsx';
import { AgentLink, SkillLink } from '../ui/Links.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Permitted } from '../ui/NeedsScope.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { Pending } from '../ui/Pending.tsx';
import { Enabled } from '../ui/Status.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { useDeleting } from '../ui/useDeleting.ts';

const route = getRouteApi('/shell/triggers/$triggerId');
const parent = { label: 'Triggers', to: '/triggers' };

export function TriggerPage() {
  const { triggerId } = route.useParams();
  const { page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(triggerQuery(triggerId));
  if (query.data === undefined) {
    return (
      <Page title="Trigger" parent={parent}>
        <Pending query={query} />
      </Page>
    );
  }
  const trigger = query.data;
  return (
    <Page
      title={trigger.name}
      about={
        <>
          <Enabled is={trigger.active} />
          {trigger.active && trigger.refusal && <CannotRun />}
        </>
      }
      parent={parent}
      actions={<Acts trigger={trigger} />}
    >
      <div className="grid items-start gap-5 lg:grid-cols-2">
        <Section title="What it starts">
          <What trigger={trigger} />
        </Section>
        <Section title="How to call it">
          {trigger.refusal && <WhyNot refusal={trigger.refusal} noun="trigger" />}
          <How trigger={trigger} />
        </Section>
      </div>
      <CallsTable
        triggerId={triggerId}
        page={page}
        onPage={(next) => void navigate({ search: { page: next } })}
      />
    </Page>
  );
}

function What({ trigger }: { trigger: Trigger }) {
  const { agent_id, event, mapping, input } = trigger;
  return (
    <div className="flex flex-col gap-4">
      <Facts
        facts={[
          event === null
            ? ['Skill', <SkillLink key="skill" skill={trigger} />]
            : ['Event', <code key="event">{event.name}</code>],
          event?.key_mapping != null && ['Its key', <code key="key">{event.key_mapping}</code>],
          ['Agent', <AgentLink key="agent" id={agent_id} />],
          trigger.priority !== null && ['Priority', trigger.priority],
          ['Limit', `${countText(trigger.rate_limit)} calls per minute`],
          ['Signatures', trigger.has_signing_secret ? 'Calls have to be signed' : 'Not asked for'],
          ['Made', <Time key="made" value={trigger.created_at} />],
          mapping === null && [
            'Mapping',
            `None: the body of a call is the ${event === null ? 'input' : 'data'}`,
          ],
        ]}
      />
      {mapping !== null && (
        <div>
          <h3 className="mb-1.5 text-[13px] font-medium">Mapping (JSONata)</h3>
          <Code text={mapping} label="Mapping" />
        </div>
      )}
      {event === null && Object.keys(input).length > 0 && (
        <div>
          <h3 className="mb-1.5 text-[13px] font-medium">Input beneath it</h3>
          <Json value={input} label="Input" />
        </div>
      )}
    </div>
  );
}

function How({ trigger }: { trigger: Trigger }) {
  return (
    <div className="flex flex-col gap-3">
      <CallCommand trigger={trigger} url={urlShape()} />
      <p className="text-[13px] leading-relaxed text-muted">
        <code className="font-mono text-ink">{unknownToken}</code> stands for the token, which was
        shown when the trigger was made and cannot be shown again. If it is lost or has become
        known, make a new trigger and delete this one.
        {trigger.has_signing_secret && (
          <>
            {' '}
            <code className="font-mono text-ink">$SECRET</code> is the signing secret.
          </>
        )}
      </p>
    </div>
  );
}

function Acts({ trigger }: { trigger: Trigger }) {
  const { id, active, name } = trigger;
  const missing = useMissingToChange(trigger);
  const [open, setOpen] = useState<'edit' | 'delete' | null>(null);
  const close = () => setOpen(null);
  const switching = useAct({
    act: () => changeTrigger(id, { active: !active }),
    done: active ? 'The trigger is disabled' : 'The trigger is enabled',
    failed: 'The trigger was not changed',
    changes: [['triggers']],
  });
  const deleting = useDeleting(() => deleteTrigger(id), 'trigger', '/triggers', [['triggers']]);
  return (
    <>
      <Permitted missing={missing} act="Changing it">
        <Button icon={<Pencil />} onClick={() => setOpen('edit')}>
          Edit
        </Button>
        <Button busy={switching.isPending} onClick={() => switching.mutate()}>
          {active ? 'Disable' : 'Enable'}
        </Button>
      </Permitted>
      <Menu
        label="More"
        items={[
          { label: 'Delete', icon: <Trash2 />, isDanger: true, act: () => setOpen('delete') },
        ]}
      />
      {open === 'edit' && <TriggerForm trigger={trigger} onClose={close} />}
      <Confirm
        open={open === 'delete'}
        onClose={close}
        title={`Delete “${name}”?`}
        verb="Delete"
        act={() => deleting.mutateAsync()}
      >
        Its url will answer 404, and the record of its calls is deleted. Its jobs stay.
      </Confirm>
    </>
  );
}
