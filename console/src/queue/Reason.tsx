import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { addressOf, pageOrganization } from '../api/organization.ts';
import { type Hold, type Limited, resume, type Subject } from '../api/queue.ts';
import { useIsAdministrator } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Play } from '../ui/icons.tsx';
import { useAct } from '../ui/useAct.ts';
import { LimitDialog } from './LimitDialog.tsx';
import { JobsLink, SkillPageLink } from './QueueLinks.tsx';

const link = 'font-medium underline underline-offset-2 hover:no-underline';

/** A reason, with the ways to the jobs that it is about and to what changes it. */
export function Reason({ hold, isOfAll }: { hold: Hold; isOfAll: boolean }) {
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1">
      <span className="wrap-anywhere">{hold.message}</span>
      <Ways hold={hold} isOfAll={isOfAll} />
    </li>
  );
}

function Ways({ hold: { code, subject }, isOfAll }: { hold: Hold; isOfAll: boolean }): ReactNode {
  const isAdministrator = useIsAdministrator();
  const processes = isAdministrator && (
    <Link to="/system" className={link}>
      Processes and their skills
    </Link>
  );
  switch (code) {
    case 'no_worker':
      return processes;
    case 'skill_not_loaded':
      return (
        <>
          {processes}
          {subject && !isOfAll && <JobsOf subject={subject}>Its jobs</JobsOf>}
        </>
      );
    case 'slots_taken':
    case 'organization_share': {
      const organization = subject?.organization_id ?? (isOfAll ? null : pageOrganization());
      if (organization === null) return null;
      const whose = isOfAll ? `Runs of ${organization}` : 'Runs under way';
      return (
        <JobsLink organization={organization} filters={{ status: 'active' }} className={link}>
          {whose}
        </JobsLink>
      );
    }
    case 'limit':
    case 'paused':
      if (subject) return <WaysOfLimit code={code} subject={subject} isOfAll={isOfAll} />;
      return isOfAll ? null : <WaysInConversations />;
    default:
      return null;
  }
}

/** The jobs that wait in conversations, and those behind which they may: what runs, and what waits for a person, for example. */
function WaysInConversations() {
  const ways = { queued: 'Waiting jobs', active: 'Runs under way', waiting: 'Suspended runs' };
  return Object.entries(ways).map(([status, text]) => (
    <Link key={status} to="/jobs" search={{ status }} className={link}>
      {text}
    </Link>
  ));
}

/** The jobs that wait, and the setting. */
function WaysOfLimit({
  code,
  subject,
  isOfAll,
}: {
  code: 'limit' | 'paused';
  subject: Subject;
  isOfAll: boolean;
}) {
  const isAdministrator = useIsAdministrator();
  const [isOpen, setOpen] = useState(false);
  const own = pageOrganization();
  const { type, id, organization_id: organization } = subject;
  const isHere = type === 'agent' ? organization === own : isAdministrator;
  const act = useAct({
    act: () => resume(subject),
    done: `${id} is resumed`,
    failed: `${id} was not resumed`,
    changes: [['queue']],
  });
  return (
    <>
      {(organization !== null || !isOfAll) && <JobsOf subject={subject}>Waiting jobs</JobsOf>}
      {type === 'skill' && code === 'limit' && (
        <SkillPageLink skill={id} className={link}>
          The skill, whose definition has the limit
        </SkillPageLink>
      )}
      {type === 'api_key' && isAdministrator && (
        <Link to="/api-keys" className={link}>
          API keys
        </Link>
      )}
      {isHere && code === 'limit' && isLimited(subject) && (
        <Button size="small" onClick={() => setOpen(true)}>
          Change the limit
        </Button>
      )}
      {isHere && code === 'paused' && (
        <Button size="small" icon={<Play />} busy={act.isPending} onClick={() => act.mutate()}>
          Resume
        </Button>
      )}
      {type === 'agent' && !isHere && organization !== null && (
        <a href={addressOf(organization, '/queue?of=own')} className={link}>
          Queue of {organization}
        </a>
      )}
      {isOpen && isLimited(subject) && <LimitDialog of={subject} onClose={() => setOpen(false)} />}
    </>
  );
}

const isLimited = (subject: Subject): subject is Limited =>
  subject.type === 'organization' || subject.type === 'agent';

/** The list of its queued jobs, from which all of them can be cancelled. */
function JobsOf({ subject, children }: { subject: Subject; children: ReactNode }) {
  const { type, id, organization_id: organization } = subject;
  const of = {
    skill: { skill: id },
    agent: { agent_id: id },
    api_key: { api_key_id: id },
    organization: {},
  }[type];
  return (
    <JobsLink
      organization={organization ?? pageOrganization()}
      filters={{ status: 'queued', ...of }}
      className={link}
    >
      {children}
    </JobsLink>
  );
}
