/**
 * Handles a call of a trigger: checks the signature, maps the body to the skill's input, and starts a run
 * for the trigger's key; or maps it to an event for waiting runs. A fault that only the trigger's
 * owner can fix is reported as the event `agent.error`; the sender only gets `404`.
 */

import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { SigningSecrets } from '../../adapters/database/signing-secrets.ts';
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Context } from '../../core/context/context.ts';
import { envelopeOf } from '../../core/events/events.ts';
import { appendEvents } from '../../core/events/outbox.ts';
import type { Executed, Execution, Target } from '../../core/jobs/execute.ts';
import type { Caller } from '../../kernel/caller.ts';
import { DecryptionError } from '../../kernel/encryption.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';
import { firstPriority } from '../../kernel/priority.ts';
import { canonicalJson } from '../../kernel/text.ts';
import type { RunEvents, SendReceipt } from '../run-events/run-events.ts';
import { eventObstacle, sendEvent } from './event-target.ts';
import { jobKeyOfCall } from './job-key.ts';
import type { MappingContext } from './mapping-context.ts';
import { payloadOf } from './payload.ts';
import { triggerNotFound } from './refusals.ts';
import { requireSignature } from './signature.ts';
import type { TriggerRow } from './triggers.store.ts';

/** A trigger reports an error with one code at most this often. */
const reportEveryMs = 60_000;
/** Remembered reports; above it, the oldest is dropped. */
const reportsMax = 10_000;

/** Headers that no expression sees, because they hold credentials. */
const secretHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
]);
/** Senders use many names for headers with a signature or a secret. */
const secretHeader = /signature|token|hmac|secret/;

/** A request as it arrived. */
export interface Call {
  readonly headers: IncomingHttpHeaders;
  /** The raw body; empty without one. */
  readonly bytes: Buffer;
  /** The refusal of an unreadable one. */
  readonly query: Readonly<Record<string, unknown>> | PlatformError;
  /** The key that makes repeats of the call one job; the refusal of an invalid one. */
  readonly idempotencyKey: string | undefined | PlatformError;
  /** The `webhook-id` alone, where the signature covers it: a replayed call could carry any other key. */
  readonly signedKey: string | undefined | PlatformError;
}

/** The parsed content of a call. */
interface Message {
  readonly body: unknown;
  readonly query: Readonly<Record<string, unknown>>;
}

/** The outcome of a call, or of an earlier identical one. */
type Received = Executed | ({ readonly job: null; readonly keyResult?: undefined } & SendReceipt);

/** The parts of the platform that a call may use. */
interface ReceiverParts {
  readonly apiKeys: ApiKeys;
  readonly secrets: SigningSecrets;
  readonly execution: Execution;
  readonly runEvents: RunEvents;
  readonly mappings: Expressions;
}

export class TriggerReceiver {
  readonly context: Context;
  readonly parts: ReceiverParts;
  /** The time of each trigger's last report of each code. */
  readonly reportedAt = new Map<string, number>();

  constructor(context: Context, parts: ReceiverParts) {
    this.context = context;
    this.parts = parts;
  }

  /** The key that the trigger acts for; `404` and `agent.error` when it is revoked or expired. */
  async callerOf(trigger: TriggerRow): Promise<Caller> {
    const caller = await this.parts.apiKeys.callerById(trigger.api_key_id);
    if (caller !== undefined) return caller;
    await report(this, trigger, 'invalid_api_key', 'its key is revoked or expired');
    throw triggerNotFound('Its key is revoked or expired');
  }

  /** Starts a run or sends an event for a call, or returns what an earlier identical call has made. */
  async receive(trigger: TriggerRow, caller: Caller, call: Call): Promise<Received> {
    const secret = await secretOf(this, trigger);
    const now = this.context.clock.now();
    const isIdSigned =
      secret !== null && requireSignature(call.headers, secret, call.bytes, now).isIdSigned;
    if (trigger.event_name !== null) {
      await requireEvents(this, trigger, caller);
      const key = valid(isIdSigned ? call.signedKey : call.idempotencyKey);
      const { headers, bytes } = call;
      const body = payloadOf(headers, bytes);
      const context = { body, query: valid(call.query), headers: visibleHeaders(headers) };
      const named = { ...trigger, event_name: trigger.event_name };
      return { job: null, ...(await sendEvent(this, named, context, key)) };
    }
    return startRun(this, trigger, caller, call, isIdSigned);
  }
}

/** Throws the refusal of a part of a call that is invalid. */
function valid<Part>(part: Part | PlatformError): Part {
  if (part instanceof PlatformError) throw part;
  return part;
}

async function startRun(
  receiver: TriggerReceiver,
  trigger: TriggerRow,
  caller: Caller,
  call: Call,
  isIdSigned: boolean,
): Promise<Executed> {
  const target = await targetOf(receiver, trigger, caller);
  const key = valid(isIdSigned ? call.signedKey : call.idempotencyKey);
  const message = { body: payloadOf(call.headers, call.bytes), query: valid(call.query) };
  const idempotency =
    key === undefined
      ? undefined
      : { owner: trigger.id, key, fingerprint: fingerprintOf(message, trigger) };
  const earlier = idempotency && (await receiver.parts.execution.findReplay(idempotency));
  if (earlier !== undefined) return { job: earlier, isReplay: true };
  const context = { ...message, headers: visibleHeaders(call.headers) };
  const input = await inputOf(receiver.parts.mappings, trigger, target, context);
  const jobKey = await jobKeyOfCall(receiver.parts.mappings, trigger, context);
  return receiver.parts.execution.execute(caller, target, input, {
    userId: trigger.name,
    triggerType: 'webhook',
    priority: trigger.priority === null ? undefined : firstPriority(trigger.priority),
    idempotency,
    jobKey,
  });
}

/** The signing secret of a trigger, or null without one; throws `503` when it cannot be decrypted. */
async function secretOf(receiver: TriggerReceiver, trigger: TriggerRow): Promise<string | null> {
  const { signing_secret: secret, secret_sealed } = trigger;
  if (secret === null) return null;
  try {
    return receiver.parts.secrets.open('agent_triggers', trigger, { secret, secret_sealed });
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    const why = 'its signing secret was stored under another ENCRYPTION_KEY';
    await report(receiver, trigger, 'service_unavailable', why);
    throw new PlatformError('service_unavailable', 'Signatures cannot be checked just now', {
      cause: `The trigger did not run: ${why}`,
    });
  }
}

/** `404`, and `agent.error`, where the trigger's key may send no events. */
async function requireEvents(
  receiver: TriggerReceiver,
  trigger: TriggerRow,
  { scopes }: Caller,
): Promise<void> {
  const why = eventObstacle(scopes);
  if (why === null) return;
  await report(receiver, trigger, 'insufficient_scope', why);
  throw triggerNotFound(why.charAt(0).toUpperCase() + why.slice(1));
}

async function targetOf(
  receiver: TriggerReceiver,
  trigger: TriggerRow,
  caller: Caller,
): Promise<Target> {
  const { skill_category: category, skill_version: version, skill_name: skillName } = trigger;
  const name = `${category}/${version}/${skillName}`;
  try {
    const path = { category, version, skillName };
    const readIds = () => ({ agentId: trigger.agent_id });
    return await receiver.parts.execution.findTarget(caller, path, readIds);
  } catch (error) {
    const code = error instanceof PlatformError ? error.code : undefined;
    if (code === 'skill_not_found') {
      const { message } = error as PlatformError;
      await report(receiver, trigger, code, message.replace('No active', 'no active'));
    }
    if (code !== 'insufficient_scope') throw error;
    const why = `its key lacks a scope that ${name} requires`;
    await report(receiver, trigger, code, why);
    throw triggerNotFound(`Its key lacks a scope that ${name} requires`);
  }
}

async function inputOf(
  mappings: Expressions,
  trigger: TriggerRow,
  { skill }: Target,
  context: MappingContext,
): Promise<unknown> {
  const mapped =
    trigger.mapping === null
      ? eventOf(context.body)
      : await mappings.evaluate(trigger.organization_id, trigger.mapping, context);
  const own = JSON.parse(trigger.input) as Record<string, unknown>;
  if (isObject(mapped)) return { ...own, ...mapped };
  if (mapped === undefined) throw invalid('mapping', 'gives nothing for this request');
  const isAlone = Object.keys(own).length === 0;
  // Some skills take a text or a list, which cannot be merged with the trigger's input.
  if (isAlone && skill.input.issuesOf(mapped) === null) return mapped;
  throw invalid('mapping', 'must give an object');
}

/** Records `agent.error`, unless the trigger has reported the same code within the last minute. */
async function report(
  { context: { database, clock }, reportedAt }: TriggerReceiver,
  trigger: TriggerRow,
  code: string,
  why: string,
): Promise<void> {
  const name = `${trigger.id}:${code}`;
  const last = reportedAt.get(name);
  if (last !== undefined && clock.monotonic() - last < reportEveryMs) return;
  reportedAt.delete(name);
  if (reportedAt.size >= reportsMax) reportedAt.delete(reportedAt.keys().next().value as string);
  reportedAt.set(name, clock.monotonic());
  const event = {
    ...envelopeOf(trigger),
    type: 'agent.error',
    data: { code, message: `The trigger ${trigger.id} did not run: ${why}.`, job_id: null },
  } as const;
  try {
    await database.write((tx) => appendEvents(tx, [event], clock.now()));
  } catch (error) {
    reportedAt.delete(name);
    throw error;
  }
}

/**
 * Equal for repeats of one call. It leaves out the mapped input, because a mapping may use the time, and
 * the headers, because some differ in a repeat, for example a date or an attempt number.
 */
function fingerprintOf({ body, query }: Message, trigger: TriggerRow): string {
  const skill = [trigger.skill_category, trigger.skill_version, trigger.skill_name];
  return hash('sha256', canonicalJson([body, query, skill]));
}

/** The input that a trigger without a mapping makes of a body. */
function eventOf(body: unknown): Record<string, unknown> {
  return isObject(body) ? body : { event: body };
}

function visibleHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const visible = Object.entries(headers).filter(
    ([name]) => !secretHeaders.has(name) && !secretHeader.test(name),
  );
  return Object.fromEntries(visible.map(([name, value]) => [name, String(value)]));
}
