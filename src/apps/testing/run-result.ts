/** What a test gets of a run that has ended. */
import { buffer } from 'node:stream/consumers';
import type { Memory } from '../../core/skills/definition.ts';
import {
  findJob,
  listFilesOfRuns,
  listMessagesOfJob,
  listReportsOfJob,
  listStepsOfJob,
} from './jobs-of-test.store.ts';
import { agentOf, type TestPlatform } from './platform.ts';
import { generateStep } from './thinking.ts';
import type { RunError, RunStep, SkillRun } from './types.ts';

/** Memories that a test gets back. */
const memoriesMax = 10_000;

/** The result of a job, null for input that was refused; `stopped` is why the test had to end. */
export async function resultOf(
  platform: TestPlatform,
  jobId: string | null,
  stopped?: RunError,
): Promise<SkillRun> {
  const { context, clock, script } = platform;
  const { read } = context.database;
  const job = jobId === null ? null : await findJob(read, jobId);
  const isCompleted = job?.status === 'completed';
  const error = isCompleted ? undefined : (stopped ?? errorOf(platform, jobId, job?.error ?? ''));
  const id = jobId ?? '';
  const reports = (await listReportsOfJob(read, id)).map(({ type, data }) => ({
    type,
    data: JSON.parse(data),
  }));
  const messages = await listMessagesOfJob(read, id);
  return {
    status: isCompleted ? 'completed' : error?.code === 'cancelled' ? 'cancelled' : 'failed',
    output: isCompleted ? JSON.parse(job.output ?? 'null') : undefined,
    error,
    logs: reports
      .filter(({ type }) => type === 'log')
      .map(({ data: { message, fields } }) => ({ message, fields })),
    progress: reports
      .filter(({ type }) => type === 'progress')
      .map(({ data: { fraction, note } }) => ({ fraction, note: note ?? undefined })),
    // The first one is the input, and the last one the output.
    messages: messages.slice(1, isCompleted ? -1 : undefined),
    steps: (await listStepsOfJob(read, id)).map(stepOf),
    requests: script.requests,
    toolCalls: script.toolCalls,
    memory: await memoriesOf(platform),
    files: await filesOf(platform),
    now: new Date(clock.now()),
    attempts: job?.attempt ?? 1,
  };
}

/** What the agent remembers; a page of it is bounded in bytes. */
async function memoriesOf({ caller, memories, script }: TestPlatform): Promise<Memory[]> {
  const owning = { organizationId: caller.organizationId, agentId: agentOf(script) };
  const known: Memory[] = [];
  for (let next: number | null = 0; next !== null && known.length < memoriesMax; ) {
    const limit = memoriesMax - known.length;
    const page = await memories.list(owning, {}, { limit, offset: next });
    known.push(...page.memories.map(({ agent_id, source, ...memory }): Memory => memory));
    next = page.next;
  }
  return known;
}

async function filesOf({ context, files }: TestPlatform): Promise<SkillRun['files']> {
  const made: SkillRun['files'][number][] = [];
  for (const row of await listFilesOfRuns(context.database.read)) {
    const { id, name, media_type } = row;
    made.push({ id, name, media_type, data: new Uint8Array(await buffer(await files.open(row))) });
  }
  return made;
}

/** The error of a failed job; what its row does not have comes from its last run. */
function errorOf({ executors }: TestPlatform, jobId: string | null, json: string): RunError {
  const { code, message } = JSON.parse(json) as RunError;
  const outcome = executors.outcomes.get(jobId ?? '');
  const isOfRun = outcome?.kind === 'failed' && outcome.message === message;
  const error = { code, message, retryable: isOfRun && outcome.retryable };
  const stack = isOfRun ? outcome.stack : undefined;
  Object.defineProperty(error, 'stack', { value: stack, enumerable: false });
  return error;
}

function stepOf(row: Awaited<ReturnType<typeof listStepsOfJob>>[number]): RunStep {
  const { name, kind, status } = row;
  const result = JSON.parse(row.result ?? '{}') as { output?: unknown; value?: unknown };
  const error = row.error === null ? null : (JSON.parse(row.error) as RunError);
  return {
    name,
    kind: (name === generateStep && kind === 'skill' ? 'generate' : kind) as RunStep['kind'],
    status,
    output: result.output ?? result.value ?? null,
    error: error && { code: error.code, message: error.message },
  };
}
