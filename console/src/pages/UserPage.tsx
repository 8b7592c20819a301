/** A user of the organization's agents: where to find what is kept, and its export and erasure. */
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { type Erased, exportUser } from '../api/user-data.ts';
import { AgentsOfUser } from '../memories/AgentsOfUser.tsx';
import { useMissingScopes } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Download, Trash2 } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { offer } from '../ui/offer.ts';
import { Page, Section } from '../ui/Page.tsx';
import { countText } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { EraseUser } from '../users/EraseUser.tsx';

const route = getRouteApi('/shell/users/$userId');
const parent = { label: 'Conversations', to: '/conversations' };

export function UserPage() {
  const { userId } = route.useParams();
  // What was erased of one user is not shown for the next.
  return <User key={userId} userId={userId} />;
}

function User({ userId }: { userId: string }) {
  const [isErasing, setErasing] = useState(false);
  const missing = useMissingScopes(['user-data']);
  const [erased, setErased] = useState<Erased | null>(null);
  const save = useAct({
    act: async () => offer(await exportUser(userId), `user-data-${userId}.ndjson`),
    done: 'The export is complete',
    failed: 'The data were not exported',
    changes: [],
  });
  return (
    <Page
      title={userId}
      about={<span className="text-[13px] text-muted">User</span>}
      parent={parent}
    >
      <Section title="What is kept">
        <ul className="flex flex-col gap-2 text-[13px]">
          <li>
            <Link to="/conversations" search={{ user_id: userId }} className={textLink}>
              Conversations of this user
            </Link>
          </li>
          <li>
            <Link to="/jobs" search={{ user_id: userId }} className={textLink}>
              Jobs for this user
            </Link>
          </li>
        </ul>
      </Section>
      <AgentsOfUser userId={userId} />
      <Section title="Data of this user">
        <div className="flex max-w-2xl flex-col gap-3 text-[13px]">
          <p>
            The export is a file with a JSON object in each line: memories and profiles of all
            agents, conversations with their messages, and jobs with input and output. The erasure
            deletes them; the rows of jobs stay, without text.
          </p>
          {missing.length > 0 ? (
            <NeedsScope scopes={missing} act="Exporting or erasing the data" />
          ) : (
            <div className="flex flex-wrap gap-2">
              <Button icon={<Download />} busy={save.isPending} onClick={() => save.mutate()}>
                Export the data
              </Button>
              <Button look="danger" icon={<Trash2 />} onClick={() => setErasing(true)}>
                Erase the data
              </Button>
            </div>
          )}
          {/* Announced when it comes. */}
          <div role="status">{erased && <WhatWasErased erased={erased} />}</div>
        </div>
      </Section>
      {isErasing && (
        <EraseUser userId={userId} onErased={setErased} onClose={() => setErasing(false)} />
      )}
    </Page>
  );
}

function WhatWasErased({ erased }: { erased: Erased }) {
  const { memories, conversations, jobs, waits_for } = erased;
  return (
    <>
      <p>
        Erased. Memories: {countText(memories)}, conversations: {countText(conversations)}, jobs
        without their text: {countText(jobs)}.
      </p>
      {waits_for !== null && (
        <p>
          {countText(erased.open_jobs)} jobs of this user have not ended. The rest waits for{' '}
          <Link to="/jobs/$jobId" params={{ jobId: waits_for }} className={textLink}>
            a job that has not ended
          </Link>
          : erase again after its end.
        </p>
      )}
    </>
  );
}
