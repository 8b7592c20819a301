import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { pendingOfJobQuery } from '../api/approvals.ts';
import { isRefused } from '../api/client.ts';
import { Section } from '../ui/Page.tsx';
import { ApprovalCard } from './ApprovalCard.tsx';
import { type Deciding, DecisionDialog } from './DecisionDialog.tsx';

/** What a person has to decide before a job goes on, to be decided here. */
export function JobApprovals({ jobId }: { jobId: string }) {
  const query = useQuery(pendingOfJobQuery(jobId));
  const [deciding, setDeciding] = useState<Deciding | null>(null);
  const pending = query.data?.data ?? [];
  return (
    <>
      {isRefused(query.error) && (
        <p className="text-[13px] text-muted">
          Where it waits for a decision, you cannot see it: your API key lacks the scope approvals.
        </p>
      )}
      {pending.length > 0 && (
        <Section title="To be decided" flush className="border-accent/40">
          <ul aria-label="Pending approvals" className="divide-y">
            {pending.map((approval) => (
              <li key={approval.approval_id}>
                <ApprovalCard
                  approval={approval}
                  brief
                  heading="h3"
                  onDecide={(verb) => setDeciding({ approval, verb })}
                />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {deciding && <DecisionDialog deciding={deciding} onClose={() => setDeciding(null)} />}
    </>
  );
}
