/** Jobs, put together: how work gets in, how it runs, how it ends. */
import type { Context } from '../../core/context/context.ts';
import type { Conversations } from '../../core/conversations/conversations.ts';
import { Acceptor } from '../../core/jobs/accept.ts';
import { BatchEnds, Batches } from '../../core/jobs/batches/batches.ts';
import { ChildJobs } from '../../core/jobs/child-jobs.ts';
import { Execution, type ExecutionParts } from '../../core/jobs/execute.ts';
import { JobFeed, SharedJobFeed } from '../../core/jobs/feed.ts';
import { Forks } from '../../core/jobs/in-conversation/forks.ts';
import { Jobs } from '../../core/jobs/jobs.ts';
import { QueueLimits } from '../../core/jobs/queued-jobs/queue-limits.ts';
import type { JobQueue } from '../../core/jobs/queues.ts';
import { StatusStream } from '../../core/jobs/status-events.ts';
import { JobRunner } from '../../core/jobs/turns/runner.ts';
import type { Turns } from '../../core/jobs/turns/turns.ts';
import type { ClusterTimes } from './cluster-times.ts';
import { composeJobRuns, composeWaitKinds, type RunSlices, type RunWorker } from './job-runs.ts';

/** Jobs of a process. Its worker starts the `runners`. */
export function composeJobs(
  context: Context,
  slices: RunSlices & { readonly conversations: Conversations },
  worker: Omit<RunWorker, 'turns' | 'runners'> &
    Pick<ExecutionParts, 'pool'> & { readonly turns: ReadonlyMap<JobQueue, Turns> },
  times: ClusterTimes,
) {
  const { bus, observers } = context;
  const feed = bus === null ? new JobFeed() : new SharedJobFeed(bus);
  observers.add(new StatusStream(feed));
  const { turns } = worker;
  const runners = new Map<JobQueue, JobRunner>();
  const waitKinds = composeWaitKinds();
  const runs = composeJobRuns(context, slices, { ...worker, runners }, { feed, waitKinds, times });
  const { admission, performer, running, settler } = runs;
  for (const [queue, ofQueue] of turns) {
    const parts = { queue, turns: ofQueue, admission, performer, running, ...times };
    runners.set(queue, new JobRunner(context, parts));
  }
  const acceptor = new Acceptor(context, admission, settler, runners);
  const { skills, agents, conversations, files } = slices;
  waitKinds.set('run', new ChildJobs({ skills, agents, admission, acceptor }));
  const executionParts = { skills, agents, conversations, acceptor, files, pool: worker.pool };
  const execution = new Execution(context, executionParts);
  const { apiKeys } = slices;
  return {
    ...runs,
    queueLimits: new QueueLimits({ agents, apiKeys, skills, places: runs.places }),
    feed,
    runners,
    waitKinds,
    acceptor,
    execution,
    batches: new Batches(context, { execution, acceptor }),
    batchEnds: new BatchEnds(context),
    forks: new Forks(context, { agents, conversations }),
    jobs: new Jobs(context, {
      skills,
      agents,
      conversations,
      acceptor,
      settler,
      running,
      feed,
    }),
  };
}
