/**
 * The run of a remote skill, for an attempt of a job or a tool call of a model: a call to the service. Promises one
 * outcome within the time limit, and that a call that may have had an effect is repeated only if its tool is idempotent.
 * Time in which a person is asked does not count.
 */
import { cleanJson } from '../../core/executors/active-run.ts';
import { outputBytesMax } from '../../core/executors/limits.ts';
import { addSecrets, redacted, redactedJson } from '../../core/executors/redaction.ts';
import type { RunHandle, RunHandlers, RunOutcome, RunRequest } from '../../core/executors/run.ts';
import { skillKeyParts } from '../../core/skills/registry.ts';
import { aborted } from '../../kernel/aborted.ts';
import { boundedValidator } from '../../kernel/bounded-schema.ts';
import { isObject } from '../../kernel/json.ts';
import { issuesText, type JsonSchema } from '../../kernel/json-schema.ts';
import { SchemaError } from '../../kernel/schema-rules.ts';
import { cleanText, jsonTextFault } from '../../kernel/text.ts';
import { answersTo, recordedQuestions, recordQuestions } from './ask-person.ts';
import {
  besideField,
  mayHaveBeside,
  type RemoteSkill,
  shownText,
  withoutHiding,
} from './definitions.ts';
import { isAmong, organizationsOfVersion } from './organizations.ts';
import { type RefreshedSource, refreshSource } from './refresh.ts';
import { RemoteFault, type RemoteKind, RemoteQuestions, type RemoteSource } from './remote-kind.ts';
import { RemoteRun } from './remote-run.ts';
import { openSource, secretTextsOf } from './secrets.ts';
import { findSource, type SourceRow } from './sources.store.ts';
import { type RemoteSkills, remoteSkillOf } from './state.ts';
import { findVersion, type VersionRow } from './versions.store.ts';

/** Unsent calls of one attempt before it fails. */
const unsentMax = 3;
const unsentAgainMs = 250;
const errorCharsMax = 4_096;
/** Calls of one run; each further call has the answers to the questions of the one before. */
const roundsMax = 10;

/** Starts a run; its skill is one of a remote source. */
export function runRemoteSkill(
  remote: RemoteSkills,
  sourceId: string,
  request: RunRequest,
  handlers: RunHandlers,
): RunHandle {
  const run = new RemoteRun(request, handlers, remote.held, sourceId);
  return {
    outcome: outcomeOf(remote, sourceId, run),
    abort: (reason) => run.stop.abort(new Error(reason)),
    // A run with an open call cannot be suspended, because the connection would be lost.
    suspend() {
      if (run.isWaiting) run.unloaded.resolve({ kind: 'waiting' });
    },
  };
}

async function outcomeOf(
  remote: RemoteSkills,
  sourceId: string,
  run: RemoteRun,
): Promise<RunOutcome> {
  const { handlers, stop, signal, timeout, unloaded, end } = run;
  const isPermitted = handlers.confirmStart === undefined || (await handlers.confirmStart());
  if (!isPermitted || stop.signal.aborted) return { kind: 'aborted' };
  timeout.resume();
  const called = callTool(remote, sourceId, run).then((output) => completed(run, output));
  try {
    return await Promise.race([called, unloaded.promise, aborted(signal)]);
  } catch (error) {
    return failed(remote, run, error);
  } finally {
    // Pending questions of a suspended run reject now; ignore the rejection.
    called.catch(() => {});
    timeout.pause();
    end.abort();
  }
}

async function callTool(remote: RemoteSkills, sourceId: string, run: RemoteRun): Promise<unknown> {
  const { request } = run;
  const { kind, source, skill } = await open(remote, sourceId, request);
  run.skill = skill;
  addSecrets(run, secretTextsOf(source));
  const { input, output, request: how } = skill.definition;
  run.outputSchema = kind.areOutputsChecked ? output : null;
  const tool = { name: skill.tool, input, output, ...(how !== undefined && { request: how }) };
  const callOnce = () => kind.call(source, tool, JSON.parse(request.input), run);
  for (let round = 1; round <= roundsMax; round++) {
    let result: unknown = await recordedQuestions(run, round);
    const isRecorded = result !== undefined;
    result ??= await callUntilSent(run, callOnce);
    if (!(result instanceof RemoteQuestions)) return result;
    // The service has asked a question instead of acting, so the call may be repeated.
    run.isSent = false;
    if (!isRecorded) await recordQuestions(run, round, result);
    run.answered = { answers: await waitForAnswers(run, result), state: result.state };
  }
  throw new RemoteFault(`The tool ${skill.tool} has asked ${roundsMax} times, and gave no result`);
}

/** Waits for the answers of people. Meanwhile the run may be suspended, and its time limit is paused. */
async function waitForAnswers(run: RemoteRun, questions: RemoteQuestions) {
  run.isWaiting = true;
  run.timeout.pause();
  try {
    return await answersTo(run, questions);
  } finally {
    run.isWaiting = false;
    run.timeout.resume();
  }
}

/** Calls the service; repeats a call that could not be sent. */
async function callUntilSent(run: RemoteRun, callOnce: () => Promise<unknown>): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    run.signal.throwIfAborted();
    try {
      return await callOnce();
    } catch (error) {
      if (!(error instanceof RemoteFault) || !error.retryable || tries >= unsentMax) throw error;
      const mayBeDone = run.isSent && !error.hadNoEffect;
      // If the service asks for a delay, the next attempt waits, not this one.
      if (mayBeDone || error.retryAfterMs !== null) throw error;
    } finally {
      run.endCall();
    }
    await new Promise((resolve) => setTimeout(resolve, unsentAgainMs * tries));
  }
}

/**
 * The stored version, after a refresh if one is due. It may have been withdrawn, from the organization of the run or from
 * all, since the job was accepted; no refresh is waited for then.
 */
async function open(
  remote: RemoteSkills,
  sourceId: string,
  { skill: key, context: { organizationId } }: RunRequest,
): Promise<{ kind: RemoteKind; source: RemoteSource; skill: RemoteSkill }> {
  const { database, kinds, cipher } = remote;
  const [, version, name] = skillKeyParts(key);
  const found = await findSource(database.read, sourceId);
  const stored = await findVersion(database.read, sourceId, name, version);
  const before = versionFor(organizationId, found, stored);
  if (before?.state !== 'active') throw new RemoteFault(inactive(key, before));
  const kind = found && kinds.get(found.kind);
  if (found === undefined || kind === undefined) throw new RemoteFault(`${key} has no service`);
  const row: RefreshedSource = isDue(remote, found, kind)
    ? await refreshSource(remote, sourceId, organizationId)
    : found;
  if (row.status === 'failing' && row !== found) {
    throw new RemoteFault(away(row.faultForRuns ?? row.fault), unavailable);
  }
  const after = row === found ? stored : await findVersion(database.read, sourceId, name, version);
  const pinned = versionFor(organizationId, row, after);
  if (pinned?.state !== 'active') throw new RemoteFault(inactive(key, pinned));
  return { kind, source: openSource(cipher, row), skill: remoteSkillOf(row, pinned) };
}

/** The version where it belongs to the organization: for the others it does not exist. */
function versionFor(
  organizationId: string,
  source: SourceRow | undefined,
  row: VersionRow | undefined,
): VersionRow | undefined {
  if (source === undefined || row === undefined) return undefined;
  return isAmong(organizationsOfVersion(source, row), organizationId) ? row : undefined;
}

const inactive = (key: string, row: VersionRow | undefined) =>
  `${key} is not active. ${row?.reason ?? 'Its service was removed.'}`;

const unavailable = { code: 'upstream_unavailable', retryable: true } as const;
const away = (fault: string | null) => fault ?? 'The service could not be refreshed';

/** Whether this process has not refreshed the source for a while, or the last refresh failed. */
function isDue({ refreshes, clock }: RemoteSkills, source: SourceRow, kind: RemoteKind) {
  const before = refreshes.endedAt.get(source.id);
  if (kind.checkEveryMs === null) return false;
  if (source.status !== 'available') return true;
  return before === undefined || clock.monotonic() - before >= kind.checkEveryMs;
}

function completed(run: RemoteRun, output: unknown): RunOutcome {
  const { outputSchema } = run;
  // Cleaned first: a secret with an invisible character in it would not be found.
  const visible = withoutHiding(JSON.stringify(output ?? null));
  if (visible.removed > 0) run.log(hidText(visible.removed));
  const json = cleanJson(redactedJson(run, visible.json));
  const bytes = Buffer.byteLength(json);
  if (bytes > outputBytesMax) {
    return invalidOutput(`The output has ${bytes} bytes, more than ${outputBytesMax}`);
  }
  const fault = jsonTextFault(json);
  if (fault !== null) return invalidOutput(`The output ${fault}`);
  const misfit = outputSchema === null ? null : misfitOf(outputSchema, json);
  return misfit === null ? { kind: 'completed', output: json } : invalidOutput(misfit);
}

/** Why an output cannot be taken, by the schema of its service. */
function misfitOf(schema: JsonSchema, json: string): string | null {
  try {
    const issues = boundedValidator(schema)(pinnedPart(schema, json));
    if (issues === null) return null;
    const text = issuesText(issues).slice(0, errorCharsMax);
    return `The output does not fit the tool's schema: ${text}`;
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return `The output cannot be checked: the schema of the tool's output ${error.message}`;
  }
}

const hidText = (count: number) =>
  `The output had invisible characters, in which texts may hide. They were removed: ${count}.`;

/** The output without the blocks beside it, of which the pinned schema says nothing. */
function pinnedPart(schema: JsonSchema, json: string): unknown {
  const output = JSON.parse(json) as unknown;
  if (!isObject(output) || !mayHaveBeside(schema)) return output;
  const { [besideField]: _, ...pinned } = output;
  return pinned;
}

function invalidOutput(message: string): RunOutcome {
  return { kind: 'failed', code: 'output_invalid', message, retryable: false };
}

function failed({ log }: RemoteSkills, run: RemoteRun, error: unknown): RunOutcome {
  const { stop, timeout, request, skill, isSent } = run;
  const mayRepeat = !isSent || skill?.isIdempotent === true;
  if (stop.signal.aborted) {
    // The platform would start it again.
    return mayRepeat ? { kind: 'aborted' } : failure(`${stoppedMidway} ${notAgain}`, false);
  }
  if (timeout.signal.aborted) {
    const seconds = request.timeoutMs / 1000;
    return { kind: 'timeout', message: `The tool did not answer within ${seconds} s` };
  }
  if (error instanceof RemoteFault) {
    const { code, message, retryAfterMs } = error;
    const retryable = error.retryable && (mayRepeat || error.hadNoEffect);
    // Cleaned first: a secret with an invisible character in it would not be found.
    const failed = failure(redacted(run, shownText(message)), retryable, code);
    return retryAfterMs === null ? failed : { ...failed, retryAfterMs };
  }
  log.error({ err: error, skill: request.skill }, 'a remote call failed unexpectedly');
  return failure('The call failed unexpectedly; the log of the platform has the reason', mayRepeat);
}

const stoppedMidway = 'The run was stopped while the tool was at work.';
const notAgain = 'It may have taken effect, so it is not called again.';

function failure(
  message: string,
  retryable: boolean,
  code: RemoteFault['code'] = 'skill_execution_failed',
): RunOutcome & { kind: 'failed' } {
  return { kind: 'failed', code, message: cleanText(message.slice(0, errorCharsMax)), retryable };
}
