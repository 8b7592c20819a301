/**
 * A run of a definition by a script, from its input to its result: passes of its code, each from the recorded
 * steps, until it ends; then further attempts, if the test wants them.
 */
import { readMoment } from '../../core/executors/durations.ts';
import type { ContextTuple } from '../../core/executors/protocol.ts';
import { unaskedFault } from '../../core/journal/records.ts';
import type { SkillDefinition } from '../../core/skills/definition.ts';
import type { RunSettings } from '../../core/skills/settings.ts';
import { timeLimitOf } from '../../core/skills/time-limits.ts';
import { compileSchema, issuesText } from '../../kernel/json-schema.ts';
import type { RunChild } from './answers.ts';
import { scriptedClock } from './clock.ts';
import { beginAttempt, endNextWaits, newJournal, type ScriptedJournal } from './journal.ts';
import { givenMemories, memoryIds, ScriptedMemory } from './memory.ts';
import { runPass } from './pass.ts';
import type { PassEnd } from './pass-state.ts';
import { type Ended, type Execution, type Failed, resultFrom } from './run-result.ts';
import { isDefinition, newScript, outputOf, scriptedSkill } from './script.ts';
import { settingsOf } from './settings.ts';
import type { RunSkillOptions, SkillRun } from './types.ts';
import { keyOf, settingsOfCalled, skillsOf, type World } from './world.ts';

const startDefault = Date.parse('2026-01-01T00:00:00Z');
const timeoutDefaultMs = 60_000;
/** Time for the code of a run to end once it was asked to stop. */
const graceMs = 1_000;

interface Attempt extends Execution {
  readonly settings: RunSettings | undefined;
}

/** Runs a definition that was checked. */
export async function runDefinition(
  definition: SkillDefinition,
  input: unknown,
  options: RunSkillOptions,
): Promise<SkillRun> {
  const startedAt = readMoment(options.now ?? startDefault, 'the option now', Date.now());
  const stop = new AbortController();
  const { timeoutMs = timeoutDefaultMs, timeoutField = null } = definition;
  const limits = { timeoutMs, timeoutField };
  const ms = options.timeoutMs ?? timeLimitOf(limits, JSON.stringify(input) ?? 'null');
  const late = new DOMException(`The run did not end within ${ms} ms`, 'TimeoutError');
  const timer = setTimeout(() => stop.abort(late), ms);
  const cancel = () => stop.abort(new DOMException('The run was cancelled', 'AbortError'));
  if (options.signal?.aborted === true) cancel();
  options.signal?.addEventListener('abort', cancel);
  const newMemoryId = memoryIds();
  const world: World = {
    script: newScript(options, startedAt),
    signal: stop.signal,
    newMemoryId,
    memories: givenMemories(options, startedAt, newMemoryId),
    ...{ faults: [], childJobs: 0 },
  };
  try {
    return await execute(world, definition, input, startedAt);
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', cancel);
  }
}

async function execute(
  world: World,
  definition: SkillDefinition,
  input: unknown,
  startedAt: number,
  job = world.script.options.jobId ?? 'job-1',
): Promise<SkillRun> {
  const { agentId, conversationId, organizationId, attempts = 1 } = world.script.options;
  const journal = newJournal(scriptedClock(startedAt));
  const execution: Execution = {
    ...{ world, definition, journal, reports: { logs: [], progress: [] } },
    context: [
      job,
      agentId ?? 'agent-1',
      conversationId ?? 'conversation-1',
      organizationId ?? 'organization-1',
    ],
  };
  const json = JSON.stringify(input) ?? 'null';
  const issues = compileSchema(definition.parameters)(JSON.parse(json));
  if (issues !== null) {
    const message = `the input breaks the skill's schema: ${issuesText(issues)}`;
    return resultFrom(execution, failed('validation_error', message));
  }
  const settings = settingsOf(world.script.options, definition);
  if (settings !== undefined && 'missing' in settings) {
    return resultFrom(execution, failed('missing_credentials', settings.missing));
  }
  for (;;) {
    const end = await executeAttempt({ ...execution, settings }, json, startedAt);
    const isLast = end.kind === 'completed' || !end.retryable || journal.attempt >= attempts;
    if (isLast || world.signal.aborted) return resultFrom(execution, end);
    beginAttempt(journal);
  }
}

/** Passes until the attempt ends. */
async function executeAttempt(
  { world, definition, journal, reports, context, settings }: Attempt,
  json: string,
  startedAt: number,
): Promise<Ended> {
  const { script, signal, faults } = world;
  const skills = skillsOf(world, definition);
  const skill = keyOf(definition);
  const deps = {
    answers: {
      ...{ journal, script },
      child: childOf(world, 'ctx.run', journal),
      tool: childOf(world, 'a tool call', journal),
    },
    ...{ skills, reports },
    settingsOf: (key: string) => settingsOfCalled(world, key),
  };
  for (let isFirst = journal.attempt === 1; ; isFirst = false) {
    const memory = new ScriptedMemory(world, journal.clock.now);
    const end = await untilStopped(
      runPass(
        { ...deps, memory },
        {
          skill,
          context: [...context, journal.attempt, startedAt, ''] satisfies ContextTuple,
          input: JSON.parse(json),
          replay: script.options.replay ?? true,
          settings,
          signal,
        },
      ),
      signal,
    );
    const [fault] = faults;
    if (fault !== undefined) throw fault;
    if (end.kind === 'waiting') {
      endNextWaits(journal);
      continue;
    }
    if (end.kind === 'failed') return end;
    const unasked = isFirst ? undefined : unaskedFault(journal.records);
    if (unasked !== undefined) return failed(unasked.code, unasked.message);
    world.memories = memory.entries;
    return end;
  }
}

/** The end of a pass, or how the run was stopped. */
async function untilStopped(pass: Promise<PassEnd>, signal: AbortSignal): Promise<PassEnd> {
  const stopped = Promise.withResolvers<PassEnd>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => stopped.resolve(stop(signal)), graceMs);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    const end = await Promise.race([pass, stopped.promise]);
    return signal.aborted && end.kind !== 'completed' ? stop(signal) : end;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    pass.catch(() => {});
  }
}

function stop({ reason }: AbortSignal): Failed {
  const { name, message } = reason as Error;
  return failed(name === 'TimeoutError' ? 'skill_timeout' : 'cancelled', message);
}

function failed(code: string, message: string): Failed {
  return { kind: 'failed', code, message, retryable: false, stack: null };
}

/** Child runs, and tools of the model, have journals of their own, and the script of the test. */
function childOf(
  world: World,
  verb: 'ctx.run' | 'a tool call',
  { clock }: ScriptedJournal,
): RunChild {
  return async (skill, input) => {
    const scripted = scriptedSkill(world.script, verb, skill);
    if (!isDefinition(scripted))
      return { output: await outputOf(scripted, input), at: clock.now() };
    world.childJobs += 1;
    const run = await execute(world, scripted, input, clock.now(), `job-1-${world.childJobs}`);
    if (run.error !== undefined) throw Object.assign(new Error(), run.error);
    return { output: run.output, at: run.now.getTime() };
  };
}
