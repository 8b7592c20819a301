/**
 * One attempt of a job in the executors, with its reports and requests until it ends: reports go to
 * the job's stream, requests to the agent's memory and model. A skill that a model calls as a tool
 * runs the same way inside the attempt. Never settles a job.
 */
import type { SkillResult } from '../agents/attempt.ts';
import type { Journal, Journals } from '../agents/journal.ts';
import type { RunThinking, Thinking } from '../agents/thinking.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import type { RunHandle, RunHandlers, RunOutcome, RunRequest } from '../executors/run.ts';
import { type RunPart, wholeRun } from '../journal/run-part.ts';
import { createRunSteps, type RunSteps } from '../journal/run-steps.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { withDeadline } from '../kernel/with-deadline.ts';
import { isMemoryVerb } from '../memories/memory-verbs.ts';
import type { MemoryChanges } from '../memories/record.ts';
import type { MemoryChange, RunMemory, StartRunMemory } from '../memories/run-memory.ts';
import type { YieldSlot } from '../queue/queue.ts';
import { type SkillRegistry, skillKeyParts } from '../skills/registry.ts';
import { type RunOptions, skillOf } from './admission.ts';
import type { ClaimedJob } from './jobs.store.ts';
import { queueOf } from './queues.ts';
import { type createReports, type ReportStream, reportOf } from './reports.ts';
import type { RunMessage } from './settle-effects.ts';
import { failureOf, type JobError } from './states.ts';

/** Runs of a tool that end with an unattributed executor death, before the tool call fails. */
const displacedMax = 3;
/** Time for the steps of a model to be recorded, once the run has ended. */
const lastStepsMs = 10_000;

/** An attempt under way. */
export interface Run {
  readonly handle: RunHandle;
  readonly messages: readonly RunMessage[];
  /** Its changes to the agent's memory; undefined when it made no memory request. */
  memoryChanges(): Promise<MemoryChanges | undefined>;
  /** Its calls of models; undefined when it made none. */
  readonly thinking: RunThinking | undefined;
  /** Whether it may have unfinished steps: it asked a model, or called a skill. */
  readonly hasSteps: boolean;
  /** Resolves when all its reports are recorded; to be awaited once it has ended. */
  ended(): Promise<void>;
}

export type StartRun = (job: ClaimedJob, options: RunOptions) => Run;

export interface RunDeps {
  readonly executors: Pick<ExecutorPool, 'run'>;
  readonly skills: Pick<SkillRegistry, 'definition'>;
  readonly reports: ReturnType<typeof createReports>;
  mayCall(job: ClaimedJob, skill: string): Promise<boolean>;
  readonly startMemory: StartRunMemory;
  readonly journals: Pick<Journals, 'open'>;
  readonly thinking: Thinking;
  readonly yieldSlot: YieldSlot;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info'>;
}

/** The state of an attempt. What is undefined is made when first needed: most runs ask for nothing. */
interface Attempt {
  readonly deps: RunDeps;
  readonly job: ClaimedJob;
  readonly context: RunRequest['context'];
  stream: ReportStream | undefined;
  memory: RunMemory | undefined;
  thinking: RunThinking | undefined;
  /** One for the whole attempt, because it numbers the steps. */
  journal: Journal | undefined;
  /** Writes to the journal under way. */
  readonly recording: Set<Promise<unknown>>;
  /** Calls under way that wait, and what takes the run's slot back. */
  waits: number;
  resume: () => void;
}

export function createRuns(deps: RunDeps): StartRun {
  return (job, options) => startRun(deps, job, options);
}

function startRun(deps: RunDeps, job: ClaimedJob, { timeoutMs, alone }: RunOptions): Run {
  const messages: RunMessage[] = [];
  const attempt = newAttempt(deps, job);
  const handle = deps.executors.run(
    {
      skill: skillOf(job),
      input: job.input,
      context: attempt.context,
      timeoutMs,
      ...(alone ? { alone } : {}),
    },
    handlersOf(attempt, wholeRun, messages),
  );
  return {
    handle,
    messages,
    get thinking() {
      return attempt.thinking;
    },
    get hasSteps() {
      return attempt.journal !== undefined;
    },
    memoryChanges: async () => attempt.memory?.changes(),
    ended: () => ended(attempt),
  };
}

function newAttempt(deps: RunDeps, job: ClaimedJob): Attempt {
  return {
    deps,
    job,
    context: {
      jobId: job.id,
      agentId: job.agent_id,
      conversationId: job.conversation_id,
      organizationId: job.organization_id,
      attempt: job.attempt,
      now: job.started_at ?? deps.clock.now(),
    },
    stream: undefined,
    memory: undefined,
    thinking: undefined,
    journal: undefined,
    recording: new Set(),
    waits: 0,
    resume: () => {},
  };
}

async function ended(attempt: Attempt): Promise<void> {
  const { thinking, recording } = attempt;
  if (thinking !== undefined) await withDeadline(thinking.ended(), lastStepsMs);
  if (recording.size > 0) await withDeadline(Promise.all(recording), lastStepsMs);
  // Read last, because the first report may be made during these waits.
  await attempt.stream?.flushed();
}

/** What answers a part of the run; `said` gets the messages of that part. */
function handlersOf(attempt: Attempt, part: RunPart, said: RunMessage[]): RunHandlers {
  let steps: RunSteps | undefined;
  const stepsOf = (): RunSteps => {
    steps ??= createRunSteps({
      part,
      journal: journalOf(attempt),
      memory: () => memoryOf(attempt),
      mayCall: (skill) => attempt.deps.mayCall(attempt.job, skill),
      said,
    });
    return steps;
  };
  return {
    onReport(report) {
      // The progress of a tool is not the progress of the job.
      if (report.type === 'progress' && part.depth > 0) return;
      if (report.type === 'message') {
        const { role, content, step } = report;
        const message = { role, content, at: attempt.deps.clock.now() };
        if (step === undefined) said.push(message);
        else stepsOf().say(step, message);
      }
      streamOf(attempt).add(reportOf(report));
    },
    async onAsk(kind, payload, signal, step) {
      const { recording } = attempt;
      if (kind === 'begin-step') return remember(recording, stepsOf().begin(payload, step));
      if (kind === 'end-step') return remember(recording, stepsOf().end(payload));
      const asking = step === null ? part : stepsOf().partOf(step);
      if (isMemoryVerb(kind)) return memoryOf(attempt).ask(kind, payload, asking.note);
      if (kind === 'generate') return thinkingOf(attempt).generate(payload, asking, signal);
      throw new Error(`A run may not ask for ${JSON.stringify(kind)}`);
    },
  };
}

function streamOf(attempt: Attempt): ReportStream {
  attempt.stream ??= attempt.deps.reports(attempt.job);
  return attempt.stream;
}

function memoryOf(attempt: Attempt): RunMemory {
  const { organization_id, agent_id } = attempt.job;
  attempt.memory ??= attempt.deps.startMemory({
    organizationId: organization_id,
    agentId: agent_id,
  });
  return attempt.memory;
}

function journalOf(attempt: Attempt): Journal {
  attempt.journal ??= attempt.deps.journals.open(attempt.job);
  return attempt.journal;
}

function thinkingOf(attempt: Attempt): RunThinking {
  const { deps, job } = attempt;
  attempt.thinking ??= deps.thinking({
    job,
    journal: journalOf(attempt),
    say: (report) => streamOf(attempt).add(report),
    memory: () => memoryOf(attempt),
    mayCall: (skill) => deps.mayCall(job, skill),
    runSkill: (...called) => runSkill(attempt, ...called),
    yieldSlot: () => yieldSlot(attempt),
  });
  return attempt.thinking;
}

/** A run has one slot to yield, however many of its calls wait at once. */
function yieldSlot(attempt: Attempt): () => void {
  const { deps, job } = attempt;
  if (attempt.waits === 0) attempt.resume = deps.yieldSlot(queueOf(job.trigger_type));
  attempt.waits += 1;
  return () => {
    attempt.waits -= 1;
    if (attempt.waits === 0) attempt.resume();
  };
}

/** Keeps a promise in a set until it has settled. */
function remember<T>(pending: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  const done = promise.catch(() => {}).then(() => void pending.delete(done));
  pending.add(done);
  return promise;
}

/** Runs a skill as a tool: with its own time limit and error, otherwise as a part of the attempt. */
async function runSkill(
  attempt: Attempt,
  name: string,
  input: string,
  part: RunPart,
  signal: AbortSignal,
): Promise<SkillResult> {
  const { deps } = attempt;
  const context = { ...attempt.context, path: part.path };
  const skill = deps.skills.definition(...skillKeyParts(name));
  if (skill === undefined) {
    const message = `No definition of the skill ${name} is loaded here`;
    return { kind: 'failed', code: 'skill_execution_failed', message };
  }
  for (let runs = 1; ; runs++) {
    if (signal.aborted) return { kind: 'stopped' };
    const run = newToolRun(attempt, part);
    const handle = deps.executors.run(
      { skill: name, input, context, timeoutMs: skill.timeoutMs, alone: runs === displacedMax },
      run.handlers,
    );
    const abort = () => handle.abort('the run that called it was stopped');
    signal.addEventListener('abort', abort, { once: true });
    const outcome = await handle.outcome;
    signal.removeEventListener('abort', abort);
    // Requests that it did not await count as well.
    await Promise.all(run.asked);
    if (outcome.kind === 'displaced' && runs < displacedMax) {
      if (run.changes.length > 0) await memoryOf(attempt).undo(run.changes);
      continue;
    }
    run.changes.forEach(part.note);
    if (outcome.kind === 'failed') {
      const { code, message, stack } = outcome;
      const failure = { job_id: attempt.job.id, skill: name, error: { code, message }, stack };
      deps.log.info(failure, 'a tool failed');
    }
    return { ...resultOf(outcome), said: run.said };
  }
}

/** One run of a tool, with the effects that are discarded if it is run again. */
interface ToolRun {
  readonly handlers: RunHandlers;
  /** Of memory. */
  readonly changes: MemoryChange[];
  /** Requests under way. */
  readonly asked: Set<Promise<unknown>>;
  readonly said: RunMessage[];
}

function newToolRun(attempt: Attempt, part: RunPart): ToolRun {
  const changes: MemoryChange[] = [];
  const asked = new Set<Promise<unknown>>();
  const said: RunMessage[] = [];
  const noted: RunPart = { ...part, note: (change) => void changes.push(change) };
  const { onReport, onAsk } = handlersOf(attempt, noted, said);
  const handlers: RunHandlers = {
    onReport,
    onAsk: (...question) => remember(asked, onAsk(...question)),
  };
  return { handlers, changes, asked, said };
}

function resultOf(outcome: RunOutcome): SkillResult {
  switch (outcome.kind) {
    case 'completed':
      return outcome;
    case 'aborted':
      return { kind: 'stopped' };
    case 'displaced':
      return { kind: 'failed', code: 'worker_lost', message: 'Its executor died again and again' };
    default:
      return { kind: 'failed', ...(failureOf(outcome) as JobError) };
  }
}
