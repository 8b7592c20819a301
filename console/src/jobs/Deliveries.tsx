import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { hasEnded, type Job, type JobDelivery, jobDeliveriesQuery } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { ButtonLink } from '../ui/Button.tsx';
import { Send } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Nothing, Status, Tag } from '../ui/Status.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';

const columns: readonly Column<JobDelivery>[] = [
  { header: 'Status', cell: ({ status }) => <Status value={status} /> },
  {
    header: 'Event',
    cell: ({ id, webhook_id, event }) => (
      <Link
        to="/webhooks/$webhookId"
        params={{ webhookId: webhook_id }}
        search={{ delivery: id }}
        className={rowLink}
      >
        {event}
      </Link>
    ),
  },
  {
    header: 'Webhook',
    from: 'md',
    grows: true,
    cell: ({ url }) => (
      <span className="text-muted" title={url}>
        {url}
      </span>
    ),
  },
  {
    header: 'Last answer',
    from: 'sm',
    cell: ({ attempts }) => <Answer last={attempts.at(-1)} />,
  },
  {
    header: 'Attempts',
    from: 'sm',
    align: 'right',
    cell: ({ attempts }) => attempts.length,
  },
  { header: 'Created', align: 'right', cell: ({ created_at }) => <Time value={created_at} /> },
];

function Answer({ last }: { last: JobDelivery['attempts'][number] | undefined }) {
  if (last === undefined) return <Nothing />;
  if (last.status === null) {
    return (
      <span className="text-bad-text" title={last.error ?? ''}>
        no answer
      </span>
    );
  }
  return <Tag tone={last.status < 300 ? 'good' : 'bad'}>{last.status}</Tag>;
}

/** Deliveries appear shortly after the end of a job. */
const momentsMs = 30_000;
const unsettled = ['pending', 'delivering'];

/** Whether more may be sent because of a job, or something is being sent. */
const isLive = (job: Job, deliveries: readonly JobDelivery[]) =>
  !hasEnded(job) ||
  Date.parse(job.finished_at ?? '') + momentsMs > Date.now() ||
  deliveries.some(({ status }) => unsettled.includes(status));

/** What was sent to webhooks because of a job. */
export function Deliveries({ job }: { job: Job }) {
  const deliveries = useQuery({
    ...jobDeliveriesQuery(job.job_id),
    refetchInterval: (query) => isLive(job, query.state.data?.data ?? []) && live(query),
  });
  return (
    <Section flush>
      <Loaded query={deliveries}>
        {({ data }) => (
          <Table
            caption="Deliveries that came of this job, newest first"
            columns={columns}
            rows={data}
            rowKey={({ id }) => id}
            empty={
              <Empty
                icon={<Send />}
                title="No deliveries of this job"
                action={<ButtonLink to="/webhooks">Webhooks</ButtonLink>}
              >
                A webhook of the job’s agent gets an event when the job completes or fails.
              </Empty>
            }
          />
        )}
      </Loaded>
    </Section>
  );
}
