import { Link } from '@tanstack/react-router';
import { pageOrganization } from '../api/organization.ts';
import type { QueueGroup, QueueOf } from '../api/queue.ts';
import { textLink } from '../ui/Links.tsx';
import { Time } from '../ui/Time.tsx';

/** Since when the oldest job waits. It links to a job of the page's own organization. */
export function Oldest({ group }: { group: QueueGroup | QueueOf }) {
  const { oldest } = group;
  if (oldest === null) return 'None is due';
  const organization = 'organization_id' in group ? group.organization_id : null;
  const isOwn = organization === pageOrganization();
  const time = <Time value={oldest.since} />;
  return (
    <>
      Oldest due{' '}
      {isOwn && oldest.job_id !== null ? (
        <Link to="/jobs/$jobId" params={{ jobId: oldest.job_id }} className={textLink}>
          {time}
        </Link>
      ) : (
        time
      )}
    </>
  );
}

/** When the next of the later ones begins. */
export function Later({ group: { next_at } }: { group: QueueGroup | QueueOf }) {
  if (next_at === null) return null;
  return (
    <>
      , next <Time value={next_at} />
    </>
  );
}
