import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { approvalQuery } from '../api/approvals.ts';
import { ApprovalCard } from '../approvals/ApprovalCard.tsx';
import { type Deciding, DecisionDialog } from '../approvals/DecisionDialog.tsx';
import { Id } from '../ui/Id.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { Pending } from '../ui/Pending.tsx';
import { Time } from '../ui/Time.tsx';

const route = getRouteApi('/shell/approvals/$approvalId');
const parent = { label: 'Approvals', to: '/approvals' };

export function ApprovalPage() {
  const { approvalId } = route.useParams();
  const query = useQuery(approvalQuery(approvalId));
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const approval = query.data;
  if (approval === undefined) {
    return (
      <Page title="Approval" parent={parent}>
        <Pending query={query} />
      </Page>
    );
  }
  return (
    <Page title="Approval" parent={parent}>
      <Section flush>
        <ApprovalCard approval={approval} onDecide={(verb) => setDeciding({ approval, verb })} />
      </Section>
      <Section title="Facts">
        <Facts
          facts={[
            ['Approval', <Id key="id" value={approval.approval_id} label="approval id" />],
            ['Job', <Id key="job" value={approval.job_id} label="job id" />],
            ['Digest', <Id key="digest" value={approval.digest} label="digest" />],
            ['Asked', <Time key="asked" value={approval.requested_at} exact />],
            ['Expires', <Time key="expires" value={approval.expires_at} exact />],
            ['Decided', <Time key="decided" value={approval.decided_at} exact />],
          ]}
        />
      </Section>
      {deciding && <DecisionDialog deciding={deciding} onClose={() => setDeciding(null)} />}
    </Page>
  );
}
