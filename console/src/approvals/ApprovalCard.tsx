import { Link } from '@tanstack/react-router';
import { useId } from 'react';
import type { Approval, Verb } from '../api/approvals.ts';
import { useIsAdministrator } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Fields } from '../ui/Fields.tsx';
import { Check, X } from '../ui/icons.tsx';
import { AgentLink, textLink } from '../ui/Links.tsx';
import { Status } from '../ui/Status.tsx';
import { Time } from '../ui/Time.tsx';
import { AskedPage } from './AskedPage.tsx';
import { fieldNames } from './answer-schema.ts';

/** An approval with its source and decision, and with buttons while it is pending. */
export function ApprovalCard({
  approval,
  onDecide,
  brief = false,
  heading: Heading = 'h2',
}: {
  approval: Approval;
  onDecide: (verb: Verb) => void;
  /** For lists: the title links to the page of the approval, and long details are cut. */
  brief?: boolean;
  heading?: 'h2' | 'h3';
}) {
  const { approval_id: approvalId, title, details, fields, link, status, step } = approval;
  const jobId = approval.job_id;
  const id = useId();
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <div className="min-w-0 grow basis-60">
          <Heading id={id} className="text-[15px] leading-snug font-semibold wrap-anywhere">
            {brief ? (
              <Link
                to="/approvals/$approvalId"
                params={{ approvalId }}
                className="hover:underline"
                tabIndex={-1}
              >
                {title}
              </Link>
            ) : (
              title
            )}
          </Heading>
          <p className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-0.5 text-xs text-muted">
            <Link to="/jobs/$jobId" params={{ jobId }} className={textLink}>
              Open the job
            </Link>
            <span>
              step <span className="font-mono">{step}</span>
            </span>
            <span>
              agent <AgentLink id={approval.agent_id} />
            </span>
            <span>
              asked <Time value={approval.requested_at} />
            </span>
            {status === 'pending' && (
              <span>
                expires <Time value={approval.expires_at} />
              </span>
            )}
          </p>
        </div>
        {status === 'pending' ? (
          <div className="flex gap-2">
            <Button
              look="primary"
              icon={<Check />}
              aria-describedby={id}
              onClick={() => onDecide('approve')}
            >
              Approve
            </Button>
            <Button
              look="danger"
              icon={<X />}
              aria-describedby={id}
              onClick={() => onDecide('reject')}
            >
              Reject
            </Button>
          </div>
        ) : (
          <Status value={status} />
        )}
      </div>
      <Fields label="What is asked" value={details} brief={brief} />
      {status === 'pending' && <AskedPage link={link} />}
      {status === 'pending' && fields !== null && <Wanted fields={fields} />}
      <Decision approval={approval} />
    </div>
  );
}

/** The fields of the approval's form. */
function Wanted({ fields }: { fields: NonNullable<Approval['fields']> }) {
  const names = fieldNames(fields);
  if (names.length === 0) return null;
  return <p className="text-xs text-muted">To be filled in: {names.join(', ')}</p>;
}

/** Who decided, when and why. */
function Decision({ approval }: { approval: Approval }) {
  const { status, decided_at, reason, answer } = approval;
  if (status === 'pending') return null;
  return (
    <div className="rounded-md bg-sunken px-3 py-2 text-[13px]">
      <p className="flex flex-wrap gap-x-1.5">
        <span className="font-medium">{ends[status]}</span>
        <Decider approval={approval} />
        {decided_at !== null && <Time value={decided_at} />}
      </p>
      {reason !== null && (
        <p className="mt-1 wrap-anywhere whitespace-pre-wrap text-muted">{reason}</p>
      )}
      {answer !== null && Object.keys(answer).length > 0 && (
        <div className="mt-2">
          <Fields label="What was filled in" value={answer} />
        </div>
      )}
    </div>
  );
}

const ends: Record<Exclude<Approval['status'], 'pending'>, string> = {
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Its time passed without a decision',
  cancelled: 'No longer needed: the job has ended',
};

function Decider({ approval: { decided_by } }: { approval: Approval }) {
  const isAdministrator = useIsAdministrator();
  if (decided_by === null) return null;
  const { kind, id, api_key_id: keyId = id, name } = decided_by;
  const who = name ?? 'an API key';
  return (
    <>
      <span>
        by{' '}
        {isAdministrator ? (
          <Link to="/api-keys/$keyId" params={{ keyId }} className={textLink}>
            {who}
          </Link>
        ) : (
          who
        )}
      </span>
      {kind === 'console' && (
        // The end of an id is random, its beginning the time.
        <span title={`Session ${id}`}>in the console, session {id.slice(-6)},</span>
      )}
    </>
  );
}
