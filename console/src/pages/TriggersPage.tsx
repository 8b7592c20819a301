import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { live } from '../api/queries.ts';
import { changeTrigger, type Trigger, triggersQuery } from '../api/triggers.ts';
import { TriggerForm } from '../forms/TriggerForm.tsx';
import { useMissingToChange } from '../triggers/useMissingToChange.ts';
import { CannotRun } from '../ui/CannotRun.tsx';
import { classes } from '../ui/classes.ts';
import { Switch } from '../ui/Field.tsx';
import { Lock, Zap } from '../ui/icons.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { Enabled } from '../ui/Status.tsx';
import { aboveRowLink, type Column, rowLink } from '../ui/Table.tsx';
import { countText } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

/** The skill that it runs, or the event that it sends. */
const whatOf = (trigger: Trigger): string =>
  trigger.event === null ? skillPath(trigger) : `event ${trigger.event.name}`;

const columns: readonly Column<Trigger>[] = [
  { header: 'Name', grows: true, cell: (one) => <Name trigger={one} /> },
  { header: 'What it starts', from: 'md', cell: whatOf },
  { header: 'Agent', from: 'lg', cell: ({ agent_id }) => agent_id },
  {
    header: 'Limit',
    from: 'sm',
    align: 'right',
    cell: ({ rate_limit }) => `${countText(rate_limit)} / min`,
  },
  { header: 'Enabled', align: 'right', cell: (one) => <Active trigger={one} /> },
];

export function TriggersPage() {
  const navigate = useNavigate();
  const query = useQuery({
    ...triggersQuery(),
    refetchInterval: live,
    select: ({ data }) => ({ data }),
  });
  return (
    <ListPage
      title="Triggers"
      query={query}
      columns={columns}
      rowKey={({ id }) => id}
      add="New trigger"
      form={(close) => (
        <TriggerForm
          onClose={close}
          onMade={(id) => void navigate({ to: '/triggers/$triggerId', params: { triggerId: id } })}
        />
      )}
      icon={<Zap />}
      none="No triggers yet"
      about="A trigger is an address that external systems call: GitHub at a push, a payment service at a payment, a shell script when the disk is full. Each call starts a run of a skill."
    />
  );
}

function Name({ trigger }: { trigger: Trigger }) {
  const { id, name, has_signing_secret, active, refusal } = trigger;
  return (
    <>
      <span className="flex items-center gap-1.5">
        <Link
          to="/triggers/$triggerId"
          params={{ triggerId: id }}
          className={classes(rowLink, 'truncate', !active && 'text-muted')}
        >
          {name}
        </Link>
        {has_signing_secret && (
          <Lock
            className="size-3.5 shrink-0 text-muted"
            role="img"
            aria-label="Signed calls only"
          />
        )}
      </span>
      <span className="block truncate text-xs text-muted md:hidden">{whatOf(trigger)}</span>
      {active && refusal && (
        <span className="mt-1 block" title={refusal.message}>
          <CannotRun />
        </span>
      )}
    </>
  );
}

function Active({ trigger }: { trigger: Trigger }) {
  const missing = useMissingToChange(trigger);
  const switching = useAct({
    act: (active: boolean) => changeTrigger(trigger.id, { active }),
    done: ({ active }) => (active ? 'The trigger is enabled' : 'The trigger is disabled'),
    failed: 'The trigger was not changed',
    changes: [['triggers']],
  });
  // Its page says which scopes are missing.
  if (missing?.length !== 0) return <Enabled is={trigger.active} />;
  return (
    <span className={classes(aboveRowLink, 'inline-flex align-middle')}>
      <Switch
        label={`Enabled: ${trigger.name}`}
        checked={switching.isPending ? switching.variables : trigger.active}
        onCheckedChange={(active) => switching.mutate(active)}
      />
    </span>
  );
}
