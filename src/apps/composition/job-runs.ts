/** What claims and runs jobs, put together. The tests of skills put the same together on a database of their own. */
import { randomInt } from 'node:crypto';
import type { WaitKind } from '../../adapters/database/tables.ts';
import type { Agents } from '../../core/agents/agents.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Context } from '../../core/context/context.ts';
import type { LoadedSkills } from '../../core/executors/loaded-skills.ts';
import type { RunStarter } from '../../core/executors/pool.ts';
import type { Files } from '../../core/files/files.ts';
import { WaitEnds } from '../../core/jobs/end-waits.ts';
import type { JobFeed } from '../../core/jobs/feed.ts';
import { Places } from '../../core/jobs/gates/places.ts';
import { NextInConversation } from '../../core/jobs/in-conversation/next-in-conversation.ts';
import type { JobQueue } from '../../core/jobs/queues.ts';
import { type RunPace, runPace } from '../../core/jobs/runs/attempt.ts';
import { Performer } from '../../core/jobs/runs/perform.ts';
import { Reports } from '../../core/jobs/runs/reports.ts';
import { RunningJobs } from '../../core/jobs/runs/running-jobs.ts';
import type { Thinking } from '../../core/jobs/runs/thinking.ts';
import { YieldedSlots } from '../../core/jobs/runs/yielding.ts';
import { Settler } from '../../core/jobs/settle.ts';
import { Admission } from '../../core/jobs/turns/admission.ts';
import { JobRecovery } from '../../core/jobs/turns/recover.ts';
import type { JobRunners } from '../../core/jobs/turns/runner.ts';
import type { Turns } from '../../core/jobs/turns/turns.ts';
import { openUnconfirmedJobClaims } from '../../core/jobs/turns/unconfirmed-claims.ts';
import { sleep } from '../../core/journal/sleep.ts';
import type { WaitKinds, WaitKindVerbs } from '../../core/journal/wait-kinds.ts';
import type { Memories } from '../../core/memories/memories.ts';
import { RunMemories } from '../../core/memories/run-memory.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import type { SkillSettings } from '../../core/skills/settings.ts';
import { providerWaits } from '../../core/thinking/pace/patience.ts';
import { approvalWaits } from '../../platform/approvals/approval-waits.ts';
import { eventWaits } from '../../platform/run-events/event-waits.ts';
import type { ClusterTimes } from './cluster-times.ts';

/** The slices that runs use. */
export interface RunSlices {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly files: Files;
  readonly memories: Memories;
  readonly skills: SkillRegistry;
  readonly skillSettings: SkillSettings;
  readonly thinking: Thinking;
}

/** What this process can run. */
export interface RunWorker {
  readonly executors: RunStarter;
  readonly loadedSkills: LoadedSkills;
  /** The turns by queue. */
  readonly turns: ReadonlyMap<JobQueue, Pick<Turns, 'offerSlots' | 'giveBack'>>;
  readonly runners: JobRunners;
  readonly pace?: RunPace;
}

/** What claims and runs jobs in this process, settles them, and recovers lost ones. */
export function composeJobRuns(
  context: Context,
  slices: RunSlices,
  worker: RunWorker,
  { feed, waitKinds, times }: { feed: JobFeed; waitKinds: WaitKinds; times: ClusterTimes },
) {
  const { config } = context;
  const { runners, executors, pace = runPace } = worker;
  const running = new RunningJobs(context);
  const waitEnds = new WaitEnds(context, running);
  const places = new Places(context, slices.skills, running, runners, slices.agents.limits);
  const settler = new Settler(context, {
    agents: slices.agents,
    memories: slices.memories,
    running,
    waitEnds,
    waitKinds,
    places,
    inConversation: new NextInConversation(context, slices.skills),
  });
  const claimedBy = randomInt(1, 2 ** 31);
  const unconfirmed = openUnconfirmedJobClaims(context, settler, running, claimedBy);
  const admission = new Admission(
    context,
    { ...slices, unconfirmed, places },
    { ...worker, claimedBy },
    times,
  );
  const runs = {
    context,
    executors,
    skills: slices.skills,
    skillSettings: slices.skillSettings,
    admission,
    places,
    reports: new Reports(context, feed),
    memories: new RunMemories(context, slices.memories, slices.agents),
    files: slices.files,
    thinking: slices.thinking,
    waitKinds,
    yieldedSlots: new YieldedSlots(runners, config.modelWaitsMax),
    pace,
  };
  const performer = new Performer(context, {
    runs,
    running,
    settler,
    // SQLite has recorded the outcome of a run before another could begin.
    settlingSlots: config.isEmbedded ? null : new YieldedSlots(runners, config.workerConcurrency),
  });
  return {
    running,
    waitEnds,
    settler,
    admission,
    performer,
    places,
    recovery: new JobRecovery(context, { settler, running, places }, times),
    unconfirmed: [unconfirmed, settler.unconfirmed],
  };
}

/** The kinds of waits that need no other slice; those of others are set by their composition. */
export function composeWaitKinds(): WaitKinds {
  return new Map<WaitKind, WaitKindVerbs>([
    ['sleep', sleep],
    ['approval', approvalWaits],
    ['event', eventWaits],
    ['provider', providerWaits],
  ]);
}
