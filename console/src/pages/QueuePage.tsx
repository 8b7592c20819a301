import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { queueQuery } from '../api/queue.ts';
import { type Changed, GroupsTable } from '../queue/GroupsTable.tsx';
import { LimitDialog } from '../queue/LimitDialog.tsx';
import { Queues } from '../queue/Queues.tsx';
import { Verdict } from '../queue/Verdict.tsx';
import { WeightDialog } from '../queue/WeightDialog.tsx';
import { useSession } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Choice } from '../ui/Choice.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Page } from '../ui/Page.tsx';

const route = getRouteApi('/shell/queue');

/** What waits in the queues, and why. The administrator sees all organizations, or that of the page alone. */
export function QueuePage() {
  const { of } = route.useSearch();
  const navigate = route.useNavigate();
  const { kind, organization_id } = useSession();
  const isAdministrator = kind === 'administrator';
  const isOfAll = isAdministrator && of !== 'own';
  const query = useQuery(queueQuery(isOfAll));
  const [changed, setChanged] = useState<{ id: string; what: Changed } | null>(null);
  const close = () => setChanged(null);
  return (
    <Page
      title="Queue"
      actions={
        isAdministrator && (
          <>
            {!isOfAll && (
              <Button onClick={() => setChanged({ id: organization_id, what: 'weight' })}>
                Weight
              </Button>
            )}
            <Choice
              label="Whose jobs"
              value={isOfAll ? 'all' : 'own'}
              choices={[
                { value: 'all', label: 'All organizations' },
                { value: 'own', label: organization_id },
              ]}
              onValue={(value) =>
                void navigate({ search: value === 'own' ? { of: 'own' } : {}, replace: true })
              }
            />
          </>
        )
      }
    >
      <Loaded query={query} lines={12}>
        {(state) => (
          <>
            <Verdict state={state} isOfAll={isOfAll} />
            <Queues queues={state.queues} />
            {isOfAll && (
              <GroupsTable
                kind="organization"
                title="By organization"
                groups={state.organizations}
                isOfAll={isOfAll}
                onChange={(id, what) => setChanged({ id, what })}
              />
            )}
            <div className="grid gap-5 2xl:grid-cols-2 2xl:items-start">
              <GroupsTable kind="skill" title="By skill" groups={state.skills} isOfAll={isOfAll} />
              <GroupsTable kind="agent" title="By agent" groups={state.agents} isOfAll={isOfAll} />
            </div>
          </>
        )}
      </Loaded>
      {changed?.what === 'weight' && <WeightDialog organizationId={changed.id} onClose={close} />}
      {changed?.what === 'limit' && (
        <LimitDialog
          of={{ type: 'organization', id: changed.id, organization_id: changed.id }}
          onClose={close}
        />
      )}
    </Page>
  );
}
