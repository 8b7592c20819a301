import { useQueries } from '@tanstack/react-query';
import { credentialsQuery } from '../api/credentials.ts';
import { healthQuery } from '../api/health.ts';
import { processesQuery } from '../api/processes.ts';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { useSession } from '../shell/session.ts';
import { AllUsage } from '../system/AllUsage.tsx';
import { Credentials } from '../system/Credentials.tsx';
import { HealthNow } from '../system/HealthNow.tsx';
import { Processes } from '../system/Processes.tsx';
import { References } from '../system/References.tsx';
import { Skeleton } from '../ui/Loading.tsx';
import { Page } from '../ui/Page.tsx';

/** Health, processes and credentials of the platform. */
export function SystemPage() {
  return (
    <AdministratorOnly title="System">
      <System />
    </AdministratorOnly>
  );
}

function System() {
  const { organization_id } = useSession();
  const parts = useQueries({
    queries: [healthQuery, processesQuery(), credentialsQuery(organization_id)],
  });
  // Parts that come one after the other would push each other down.
  if (parts.some(({ isPending }) => isPending)) {
    return (
      <Page title="System">
        <Skeleton />
      </Page>
    );
  }
  return (
    <Page title="System">
      <div className="grid items-stretch gap-4 lg:grid-cols-2">
        <HealthNow />
        <References />
      </div>
      <Processes />
      <Credentials key={organization_id} organizationId={organization_id} />
      <AllUsage />
    </Page>
  );
}
