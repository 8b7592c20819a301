/**
 * One attempt of a job in the executors, with its reports and requests until it ends: reports go to
 * the job's stream, requests to the agent's memory and model. A skill that a model calls as a tool
 * runs the same way inside the attempt. Never settles a job.
 */
import type { Journal, Journals } from '../agents/journal.ts';
import { type RunPart, wholeRun } from '../agents/run-part.ts';
import { createRunSteps, type RunSteps } from '../agents/run-steps.ts';
import type { RunThinking, Thinking } from '../agents/thinking.ts';
import type { SkillResult } from '../agents/tool-runs.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import type { RunHandle, RunHandlers, RunOutcome, RunReport } from '../executors/run.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { withDeadline } from '../kernel/with-deadline.ts';
import type { MemoryChanges } from '../memories/record.ts';
import {
  isMemoryQuestion,
  type MemoryChange,
  type RunMemory,
  type StartRunMemory,
} from '../memories/run-memory.ts';
import type { YieldSlot } from '../queue/queue.ts';
import { type SkillRegistry, skillKey, skillKeyParts } from '../skills/registry.ts';
import type { RunOptions } from './admission.ts';
import type { ClaimedJob } from './jobs.store.ts';
import { queueOf } from './queues.ts';
import type { createReports, ReportStream } from './reports.ts';
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

export function createRuns(parts: {
  executors: Pick<ExecutorPool, 'run'>;
  skills: Pick<SkillRegistry, 'definition'>;
  reports: ReturnType<typeof createReports>;
  mayCall(job: ClaimedJob, skill: string): Promise<boolean>;
  startMemory: StartRunMemory;
  journals: Pick<Journals, 'open'>;
  thinking: Thinking;
  yieldSlot: YieldSlot;
  clock: Clock;
  log: Pick<Logger, 'info'>;
}): StartRun {
  const { executors, skills, reports, mayCall, startMemory, journals, clock, log } = parts;

  return (job, { timeoutMs, alone }) => {
    const messages: RunMessage[] = [];
    // Made when first needed: most runs never report or ask anything.
    let stream: ReportStream | undefined;
    let memory: RunMemory | undefined;
    let thinking: RunThinking | undefined;
    let journal: Journal | undefined;
    const stepsAsked = new Set<Promise<unknown>>();
    let waits = 0;
    let resume = () => {};
    const context = {
      jobId: job.id,
      agentId: job.agent_id,
      conversationId: job.conversation_id,
      organizationId: job.organization_id,
      attempt: job.attempt,
    };

    function streamOf(): ReportStream {
      stream ??= reports(job);
      return stream;
    }

    function memoryOf(): RunMemory {
      memory ??= startMemory({ organizationId: job.organization_id, agentId: job.agent_id });
      return memory;
    }

    /** One for the whole attempt, because it numbers the steps. */
    function journalOf(): Journal {
      journal ??= journals.open(job);
      return journal;
    }

    function thinkingOf(): RunThinking {
      thinking ??= parts.thinking({
        job,
        journal: journalOf(),
        say: (report) => streamOf().add(report),
        memory: memoryOf,
        mayCall: (skill) => mayCall(job, skill),
        runSkill,
        yieldSlot,
      });
      return thinking;
    }

    /** A run has one slot to yield, however many of its calls wait at once. */
    function yieldSlot(): () => void {
      if (waits === 0) resume = parts.yieldSlot(queueOf(job.trigger_type));
      waits += 1;
      return () => {
        waits -= 1;
        if (waits === 0) resume();
      };
    }

    /** Remembers a write to the journal until it has ended. */
    function recording<T>(write: Promise<T>): Promise<T> {
      const done = write.catch(() => {}).then(() => void stepsAsked.delete(done));
      stepsAsked.add(done);
      return write;
    }

    /** `said` gets the messages of these handlers. */
    function handlers(part: RunPart, said: RunMessage[]): RunHandlers {
      let steps: RunSteps | undefined;
      const stepsOf = (): RunSteps => {
        steps ??= createRunSteps({
          part,
          journal: journalOf(),
          memory: memoryOf,
          mayCall: (skill) => mayCall(job, skill),
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
            const message = { role, content, at: clock.now() };
            if (step === undefined) said.push(message);
            else stepsOf().say(step, message);
          }
          addReport(streamOf(), report);
        },
        async onAsk(kind, payload, signal, step) {
          if (kind === 'begin-step') return recording(stepsOf().begin(payload, step));
          if (kind === 'end-step') return recording(stepsOf().end(payload));
          const asking = step === null ? part : stepsOf().partOf(step);
          if (isMemoryQuestion(kind)) return memoryOf().ask(kind, payload, asking.note);
          if (kind === 'generate') return thinkingOf().generate(payload, asking, signal);
          throw new Error(`A run may not ask for ${JSON.stringify(kind)}`);
        },
      };
    }

    /** One run of a tool, whose effects are discarded if it is run again. */
    function toolRun(part: RunPart) {
      const changes: MemoryChange[] = [];
      const asked = new Set<Promise<unknown>>();
      const said: RunMessage[] = [];
      const own = handlers({ ...part, note: (change) => void changes.push(change) }, said);
      return {
        said,
        handlers: {
          ...own,
          onAsk(kind, payload, signal, step) {
            const answer = own.onAsk(kind, payload, signal, step);
            const done = answer.catch(() => {}).then(() => void asked.delete(done));
            asked.add(done);
            return answer;
          },
        } satisfies RunHandlers,

        /** Keeps its memory changes, those of requests that it did not await too. */
        async keep() {
          await Promise.all(asked);
          changes.forEach(part.note);
        },

        /** Discards its effects; resolves when none of its requests is under way. */
        async undo() {
          await Promise.all(asked);
          if (changes.length > 0) await memoryOf().undo(changes);
        },
      };
    }

    /** Runs a skill as a tool: with its own time limit and error, otherwise as a part of this attempt. */
    async function runSkill(
      name: string,
      input: string,
      part: RunPart,
      signal: AbortSignal,
    ): Promise<SkillResult> {
      const skill = skills.definition(...skillKeyParts(name));
      if (skill === undefined) return failed(`No definition of the skill ${name} is loaded here`);
      for (let runs = 1; ; runs++) {
        if (signal.aborted) return { kind: 'stopped' };
        const run = toolRun(part);
        const handle = executors.run(
          { skill: name, input, context, timeoutMs: skill.timeoutMs, alone: runs === displacedMax },
          run.handlers,
        );
        const abort = () => handle.abort('the run that called it was stopped');
        signal.addEventListener('abort', abort, { once: true });
        const outcome = await handle.outcome;
        signal.removeEventListener('abort', abort);
        if (outcome.kind === 'displaced' && runs < displacedMax) {
          await run.undo();
          continue;
        }
        await run.keep();
        if (outcome.kind === 'failed') {
          const { code, message, stack } = outcome;
          log.info(
            { job_id: job.id, skill: name, error: { code, message }, stack },
            'a tool failed',
          );
        }
        return { ...resultOf(outcome), said: run.said };
      }
    }

    const handle = executors.run(
      {
        skill: skillKey(job.skill_category, job.skill_version, job.skill_name),
        input: job.input,
        context,
        timeoutMs,
        ...(alone ? { alone } : {}),
      },
      handlers(wholeRun, messages),
    );
    return {
      handle,
      messages,
      get thinking() {
        return thinking;
      },
      get hasSteps() {
        return journal !== undefined;
      },
      memoryChanges: async () => memory?.changes(),
      async ended() {
        if (thinking !== undefined) await withDeadline(thinking.ended(), lastStepsMs);
        if (stepsAsked.size > 0) await withDeadline(Promise.all(stepsAsked), lastStepsMs);
        await stream?.flushed();
      },
    };
  };
}

function failed(message: string): SkillResult {
  return { kind: 'failed', code: 'skill_execution_failed', message };
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

function addReport(stream: ReportStream, report: RunReport): void {
  switch (report.type) {
    case 'log': {
      const { message, fields } = report;
      stream.add({ type: 'log', data: fields === undefined ? { message } : { message, fields } });
      break;
    }
    case 'progress':
      stream.add({
        type: 'progress',
        data: { fraction: report.fraction, note: report.note ?? null },
      });
      break;
    case 'message':
      stream.add({ type: 'message', data: { role: report.role, content: report.content } });
      break;
  }
}
