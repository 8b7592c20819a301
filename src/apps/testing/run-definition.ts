/**
 * A run of a definition by a script, from its input to its result: its job and those that it starts are claimed and run
 * when they are due, and once all of them wait, the clock moves to what comes next.
 */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMoment } from '../../core/executors/child/durations.ts';
import type { SkillDefinition } from '../../core/skills/definition.ts';
import { timeLimitOf } from '../../core/skills/time-limits.ts';
import { issuesText } from '../../kernel/json-schema.ts';
import { findJob, listDeadlines, listOpenJobs } from './jobs-of-test.store.ts';
import { acceptJob, openDatabase, openPlatform, type TestPlatform } from './platform.ts';
import { resultOf } from './run-result.ts';
import { Script } from './script.ts';
import type { RunError, RunSkillOptions, SkillRun } from './types.ts';

const startDefault = Date.parse('2026-01-01T00:00:00Z');
const timeoutDefaultMs = 60_000;

/** Runs a definition that was checked. */
export async function runDefinition(
  definition: SkillDefinition,
  input: unknown,
  options: RunSkillOptions,
): Promise<SkillRun> {
  const startedAt = readMoment(options.now ?? startDefault, 'the option now', Date.now());
  const json = JSON.stringify(input) ?? 'null';
  const stop = new AbortController();
  const cancel = () => stop.abort(new DOMException('The run was cancelled', 'AbortError'));
  const { timeoutMs = timeoutDefaultMs, timeoutField = null } = definition;
  const ms = options.timeoutMs ?? timeLimitOf({ timeoutMs, timeoutField }, json);
  const late = new DOMException(`The run did not end within ${ms} ms`, 'TimeoutError');
  const timer = setTimeout(() => stop.abort(late), ms);
  if (options.signal?.aborted === true) cancel();
  options.signal?.addEventListener('abort', cancel);
  const database = await openDatabase();
  // Made by the first file.
  const dataDir = join(tmpdir(), `skillwright-test-${randomUUID()}`);
  try {
    const script = new Script(options, startedAt, stop.signal);
    return await run(await openPlatform(database, dataDir, definition, script), json);
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', cancel);
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function run(platform: TestPlatform, json: string): Promise<SkillRun> {
  const { context, caller, executors, running, script, skills, standIns } = platform;
  const { category, version, name } = standIns.definition;
  const skill = skills.active(caller.organizationId, category, version, name);
  const issues = skill.input.issuesOf(JSON.parse(json));
  if (issues !== null) {
    const message = `the input breaks the skill's schema: ${issuesText(issues)}`;
    return resultOf(platform, null, { code: 'validation_error', message, retryable: false });
  }
  const { id } = await acceptJob(platform, json);
  const active = new Map<string, Promise<void>>();
  try {
    while (!script.signal.aborted && script.fault === undefined) {
      const { status } = await findJob(context.database.read, id);
      if (status === 'completed' || status === 'failed' || status === 'cancelled') break;
      await goOn(platform, active);
    }
  } finally {
    // Child runs, and code that waits, may not end by themselves.
    executors.isClosed = true;
    running.handBack();
    await Promise.all(active.values());
  }
  if (script.fault !== undefined) throw script.fault;
  return resultOf(platform, id, script.signal.aborted ? stopped(script.signal) : undefined);
}

/** Starts what is due; where nothing is and all that was started waits, moves the clock to what comes next. */
async function goOn(platform: TestPlatform, active: Map<string, Promise<void>>): Promise<void> {
  const { clock, context, ends, script, waitEnds } = platform;
  const { read } = context.database;
  const now = clock.now();
  const open = (await listOpenJobs(read)).filter(({ id }) => !active.has(id));
  for (const { id } of open.filter(({ dueAt }) => dueAt <= now)) {
    const ended = perform(platform, id).catch((error: unknown) => {
      script.fault ??= error as Error;
    });
    active.set(
      id,
      ended.then(() => {
        active.delete(id);
        wakeIdle(platform);
        script.notify();
      }),
    );
  }
  if ([...active.keys()].some((id) => !script.idle.has(id))) return script.changed();
  const due = open.map(({ dueAt }) => dueAt);
  const next = Math.min(...due, ...(await listDeadlines(read)), ends.next());
  if (!Number.isFinite(next)) throw new Error('The run waits for nothing that could come');
  clock.advanceTo(next);
  const come = ends.take(clock.now());
  if (come.length > 0) {
    await context.database.write((tx) => waitEnds.endWaits(tx, come, clock.now()));
  }
  wakeIdle(platform);
}

/** Claims a due job and runs it. */
async function perform(platform: TestPlatform, id: string): Promise<void> {
  const { admission, context, performer, running } = platform;
  running.start(id);
  const [job] = await context.database.write((tx) => admission.claim(tx, [id]));
  if (job) await performer.perform(job);
  else running.endStart(id);
}

/** Has the runs that stay loaded, and of which everything waits, read which of their waits have ended. */
function wakeIdle({ clock, running, script: { idle } }: TestPlatform): void {
  const loaded = [...idle];
  idle.clear();
  clock.advanceTo(clock.now());
  for (const id of loaded) running.wake(id);
}

function stopped({ reason }: AbortSignal): RunError {
  const { name, message } = reason as Error;
  const code = name === 'TimeoutError' ? 'skill_timeout' : 'cancelled';
  return { code, message, retryable: false };
}
