import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { conversationsQuery } from '../api/conversations.ts';
import { live } from '../api/queries.ts';
import { openingWords } from '../conversations/content.ts';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Loaded } from '../ui/Loading.tsx';
import { Time } from '../ui/Time.tsx';

const shownFirst = 20;
/** As many as a page of the API may have; the page of conversations has all. */
const shownMax = 200;

/** The newest conversations of an agent. */
export function ChatList({ agentId, current }: { agentId: string; current: string | undefined }) {
  const [limit, setLimit] = useState(shownFirst);
  const query = useQuery({
    ...conversationsQuery({ agent_id: agentId, include: 'opening', limit }),
    refetchInterval: live,
  });
  return (
    <Loaded query={query} lines={4}>
      {({ data, total }) => (
        <nav aria-label="Conversations of the agent" className="flex flex-col gap-0.5">
          {total === 0 && <p className="p-2 text-[13px] text-muted">None yet.</p>}
          {data.map(({ id, opening, updated_at, status, user_id }) => (
            <Link
              key={id}
              to="/agents/$agentId"
              params={{ agentId }}
              search={{ conversation: id }}
              aria-current={id === current ? 'page' : undefined}
              className={classes(
                'flex min-w-0 flex-col rounded-md px-2 py-1.5 text-[13px] hover:bg-hover',
                id === current && 'bg-accent-soft text-accent-text',
              )}
            >
              <span className="truncate">{openingWords(opening) || id}</span>
              <span className="flex gap-2 text-xs text-muted">
                <Time value={updated_at} />
                <span className="truncate">{user_id}</span>
                {status !== 'completed' && <span className="ml-auto">{status}</span>}
              </span>
            </Link>
          ))}
          {total > limit &&
            (limit < shownMax ? (
              <Button look="quiet" size="small" onClick={() => setLimit(shownMax)}>
                Show more
              </Button>
            ) : (
              <Link
                to="/conversations"
                search={{ agent_id: agentId }}
                className="p-2 text-[13px] text-muted hover:underline"
              >
                All conversations
              </Link>
            ))}
        </nav>
      )}
    </Loaded>
  );
}
