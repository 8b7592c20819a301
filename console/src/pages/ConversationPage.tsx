import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { agentsQuery } from '../api/agents.ts';
import {
  conversationQuery,
  messagesPageSize,
  messagesQuery,
  tokenUsageQuery,
  turnJobsQuery,
} from '../api/conversations.ts';
import { type JobListItem, jobsQuery, runningAmong } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { LiveAnswer } from '../conversations/LiveAnswer.tsx';
import { Transcript } from '../conversations/Transcript.tsx';
import { turnsOf } from '../conversations/turns.ts';
import { JobsTable } from '../jobs/JobsTable.tsx';
import { sourceText } from '../jobs/words.ts';
import { ButtonLink } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Id } from '../ui/Id.tsx';
import { MessagesSquare } from '../ui/icons.tsx';
import { AgentLink, textLink, UserLink } from '../ui/Links.tsx';
import { Empty, Loaded, Skeleton } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination } from '../ui/Pagination.tsx';
import { Status } from '../ui/Status.tsx';
import { Strip } from '../ui/Strip.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { costFact, tokensFact } from '../ui/tokens.ts';

const route = getRouteApi('/shell/conversations/$conversationId');
const parent = { label: 'Conversations', to: '/conversations' };
/** Of its jobs, the newest. */
const jobsMax = 10;

export function ConversationPage() {
  const { conversationId } = route.useParams();
  const conversation = useQuery({
    ...conversationQuery(conversationId),
    refetchInterval: live,
  });
  const jobs = useQuery({
    ...jobsQuery({ conversation_id: conversationId, include: 'timing', limit: jobsMax }),
    refetchInterval: live,
  });
  return (
    <Page
      title="Conversation"
      parent={parent}
      about={conversation.data && <Status value={conversation.data.status} />}
      actions={conversation.data && <Continue {...conversation.data} />}
    >
      <Loaded query={conversation}>
        {({
          agent_id,
          user_id,
          trigger_type,
          forked_from,
          created_at,
          updated_at,
          status,
          ...sums
        }) => (
          <>
            <Strip
              facts={[
                ['Agent', <AgentLink key="agent" id={agent_id} />],
                ['User', <UserLink key="user" id={user_id} />],
                ['Source', sourceText(trigger_type)],
                forked_from !== undefined && [
                  'Forked from',
                  <Link
                    key="forked"
                    to="/conversations/$conversationId"
                    params={{ conversationId: forked_from }}
                    className={classes('font-mono text-xs', textLink)}
                  >
                    {forked_from}
                  </Link>,
                ],
                ['Started', <Time key="started" value={created_at} />],
                ['Changed', <Time key="changed" value={updated_at} />],
                ['Tokens', tokensFact(sums)],
                costFact(sums) !== null && ['Cost', costFact(sums)],
                ['Id', <Id key="id" value={conversationId} label="conversation id" />],
              ]}
            />
            <Messages
              key={conversationId}
              conversationId={conversationId}
              isActive={status === 'active'}
              updatedAt={updated_at}
              newest={runningAmong(jobs.data?.data ?? [])}
            >
              <Section
                title="Jobs"
                flush
                actions={
                  (jobs.data?.total ?? 0) > jobsMax && (
                    <ButtonLink
                      to="/jobs"
                      search={{ conversation_id: conversationId }}
                      look="quiet"
                      size="small"
                    >
                      All {countText(jobs.data?.total ?? 0)}
                    </ButtonLink>
                  )
                }
              >
                <Loaded query={jobs}>
                  {({ data }) => (
                    <JobsTable caption="Jobs of this conversation" jobs={data} brief />
                  )}
                </Loaded>
              </Section>
            </Messages>
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Leads into the chat with its agent, unless that is known to be gone. */
function Continue({ id, agent_id: agentId }: { id: string; agent_id: string }) {
  const agents = useQuery(agentsQuery()).data;
  const isGone =
    agents !== undefined &&
    agents.total <= agents.data.length &&
    !agents.data.some((agent) => agent.id === agentId);
  if (isGone) return null;
  return (
    <ButtonLink
      to="/agents/$agentId"
      params={{ agentId }}
      search={{ conversation: id }}
      look="primary"
      icon={<MessagesSquare />}
    >
      Continue
    </ButtonLink>
  );
}

/** The transcript, and below it `children`: once both can be shown, so that neither moves. */
function Messages({
  conversationId,
  isActive,
  updatedAt,
  newest,
  children,
}: {
  conversationId: string;
  isActive: boolean;
  updatedAt: string;
  /** Its active job. */
  newest: JobListItem | undefined;
  children: ReactNode;
}) {
  const { page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const refetchInterval = isActive && live;
  const messages = useQuery({ ...messagesQuery(conversationId, page, updatedAt), refetchInterval });
  const jobs = useQuery({ ...turnJobsQuery(conversationId, updatedAt), refetchInterval });
  const usage = useQuery({ ...tokenUsageQuery(conversationId, updatedAt), refetchInterval });
  // What is being said stays until it can be read among the messages.
  const running = isActive || messages.isPlaceholderData ? newest : undefined;
  if ([messages, jobs, usage].some(({ isPending }) => isPending)) return <Skeleton />;
  return (
    <>
      <Section title="Transcript" flush>
        <Loaded query={messages}>
          {({ data, total }) => {
            const isLastPage = page * messagesPageSize >= total;
            const turns = turnsOf(data, jobs.data?.data ?? [], isLastPage);
            return (
              <>
                <div className="p-4">
                  {total === 0 && !running ? (
                    <Empty icon={<MessagesSquare />} title="No messages">
                      Messages are deleted with their job.
                    </Empty>
                  ) : (
                    <Transcript turns={turns} usage={usage.data}>
                      {running && isLastPage && (
                        <LiveAnswer
                          conversationId={conversationId}
                          jobId={running.job_id}
                          shown={data}
                        />
                      )}
                    </Transcript>
                  )}
                </div>
                {total > messagesPageSize && (
                  <Pagination
                    page={page}
                    total={total}
                    size={messagesPageSize}
                    onPage={(next) => void navigate({ search: { page: next } })}
                  />
                )}
              </>
            );
          }}
        </Loaded>
      </Section>
      {children}
    </>
  );
}
