/**
 * What a trigger does with a request to its address: checks the signature, makes the skill's input
 * of what came, and starts a run in the name of the key that made the trigger. What only the
 * trigger's owner can mend is told as `agent.error`, and to the sender no more than that there is
 * nothing here.
 */
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Database } from '../database/database.ts';
import type { SigningSecrets } from '../database/signing-secrets.ts';
import { appendEvents } from '../events/outbox.ts';
import type { AcceptedJob } from '../jobs/accept.ts';
import type { Execute, Target } from '../jobs/execute.ts';
import { idempotencyMs } from '../jobs/idempotency.ts';
import type { Caller } from '../kernel/caller.ts';
import type { Clock } from '../kernel/clock.ts';
import { DecryptionError } from '../kernel/encryption.ts';
import { invalid, PlatformError } from '../kernel/errors.ts';
import { canonicalJson } from '../kernel/text.ts';
import type { Mappings } from './mapping.ts';
import { payloadOf } from './payload.ts';
import { requireSignature } from './signature.ts';
import { findStartedJob } from './triggers.store.ts';
import { type CalledTrigger, triggerNotFound } from './triggers.ts';

/** A trigger tells of an error of one kind at most this often, however often it is called. */
const tellEveryMs = 60_000;
/** Errors of triggers whose last time is remembered; the oldest goes first. */
const toldMax = 10_000;

/** What no expression sees, because it proves who somebody is or what was sent. */
const secretHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
]);
/** Every sender has a name of its own for such a header. */
const secretHeader = /signature|token|hmac|secret/;

/** A request as it arrived. */
export interface Call {
  readonly headers: IncomingHttpHeaders;
  /** The body, byte by byte; empty when there is none. */
  readonly bytes: Buffer;
  /** Its query, or `400`. */
  query(): Readonly<Record<string, unknown>>;
  /**
   * What makes repeats of it one job, or `400`. Where its id is signed that alone: whoever sends an
   * old call again can put any other name on it.
   */
  idempotencyKey(isIdSigned: boolean): string | undefined;
}

/** What a call says, as values. */
interface Message {
  readonly body: unknown;
  readonly query: Readonly<Record<string, unknown>>;
}

/** What makes repeats of a call one job. */
interface Idempotency {
  /** The id of the trigger. */
  readonly owner: string;
  readonly key: string;
  readonly fingerprint: string;
}

export type Receive = ReturnType<typeof createReceive>;

export function createReceive(parts: {
  database: Database;
  clock: Clock;
  apiKeys: Pick<ApiKeys, 'callerById'>;
  execute: Execute;
  mappings: Pick<Mappings, 'evaluate'>;
  secrets: Pick<SigningSecrets, 'open'>;
}) {
  const { database, clock, apiKeys, execute, mappings, secrets } = parts;
  const told = new Map<string, number>();

  /** Records `agent.error`, unless the trigger told of the same within the last minute. */
  async function tell(trigger: CalledTrigger, code: string, why: string): Promise<void> {
    const name = `${trigger.id}:${code}`;
    const last = told.get(name);
    if (last !== undefined && clock.monotonic() - last < tellEveryMs) return;
    told.delete(name);
    if (told.size >= toldMax) told.delete(told.keys().next().value as string);
    told.set(name, clock.monotonic());
    const event = {
      type: 'agent.error',
      organizationId: trigger.organization_id,
      agentId: trigger.agent_id,
      data: { code, message: `The trigger ${trigger.id} did not run: ${why}.`, job_id: null },
    } as const;
    try {
      await database.write((tx) => appendEvents(tx, [event], clock.now()));
    } catch (error) {
      told.delete(name);
      throw error;
    }
  }

  /** What a trigger's calls are signed with; null when they need not be, `503` where it is unreadable. */
  async function secretOf(trigger: CalledTrigger): Promise<string | null> {
    const { signing_secret: secret, secret_sealed } = trigger;
    if (secret === null) return null;
    try {
      return secrets.open('agent_triggers', trigger, { secret, secret_sealed });
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      const why = 'its signing secret was stored under another ENCRYPTION_KEY';
      await tell(trigger, 'service_unavailable', why);
      throw new PlatformError('service_unavailable', 'Signatures cannot be checked just now', {
        cause: `The trigger did not run: ${why}`,
      });
    }
  }

  async function targetOf(trigger: CalledTrigger, caller: Caller): Promise<Target> {
    const { skill_category: category, skill_version: version, skill_name: skillName } = trigger;
    const name = `${category}/${version}/${skillName}`;
    try {
      return await execute.target(caller, { category, version, skillName }, () => ({
        agentId: trigger.agent_id,
      }));
    } catch (error) {
      const code = error instanceof PlatformError ? error.code : undefined;
      if (code === 'skill_not_found') {
        const { message } = error as PlatformError;
        await tell(trigger, code, message.replace('No active', 'no active'));
      }
      if (code !== 'insufficient_scope') throw error;
      await tell(trigger, code, `the key that made it lacks a scope that ${name} requires`);
      throw triggerNotFound(`The key that made it lacks a scope that ${name} requires`);
    }
  }

  /** The job that the same call has started already; execute has the last word. */
  function startedJob({ owner, key, fingerprint }: Idempotency): Promise<AcceptedJob | undefined> {
    const since = clock.now() - idempotencyMs;
    return findStartedJob(database.read, { owner, key, fingerprint, since });
  }

  async function inputOf(
    trigger: CalledTrigger,
    { skill }: Target,
    { body, query }: Message,
    headers: IncomingHttpHeaders,
  ): Promise<unknown> {
    const mapped =
      trigger.mapping === null
        ? eventOf(body)
        : await mappings.evaluate(trigger.organization_id, trigger.mapping, {
            body,
            headers: shownHeaders(headers),
            query,
          });
    const own = JSON.parse(trigger.input) as Record<string, unknown>;
    if (isObject(mapped)) return { ...own, ...mapped };
    if (mapped === undefined) throw invalid('mapping', 'gives nothing for this request');
    const isAlone = Object.keys(own).length === 0;
    // Some skills take a text or a list; there is nothing to merge it with.
    if (isAlone && skill.inputIssues(mapped) === null) return mapped;
    throw invalid('mapping', 'must give an object');
  }

  return {
    /** The caller whom a trigger works for; `404` and `agent.error` when that key may no more. */
    async callerOf(trigger: CalledTrigger): Promise<Caller> {
      const caller = await apiKeys.callerById(trigger.api_key_id);
      if (caller !== undefined) return caller;
      await tell(trigger, 'invalid_api_key', 'the key that made it is revoked or expired');
      throw triggerNotFound('The key that made it is revoked or expired');
    },

    /** Starts the run that a request asks for; whether it is an earlier one again. */
    async accept(
      trigger: CalledTrigger,
      caller: Caller,
      call: Call,
    ): Promise<{ job: AcceptedJob; isReplay: boolean }> {
      const secret = await secretOf(trigger);
      const { isIdSigned } =
        secret === null
          ? { isIdSigned: false }
          : requireSignature(call.headers, secret, call.bytes, clock.now());
      const target = await targetOf(trigger, caller);
      const key = call.idempotencyKey(isIdSigned);
      const message = { body: payloadOf(call.headers, call.bytes), query: call.query() };
      const idempotency =
        key === undefined
          ? undefined
          : { owner: trigger.id, key, fingerprint: fingerprintOf(message, trigger) };
      const earlier = idempotency && (await startedJob(idempotency));
      if (earlier !== undefined) return { job: earlier, isReplay: true };
      const input = await inputOf(trigger, target, message, call.headers);
      return execute.run(caller, target, input, {
        userId: trigger.name,
        triggerType: 'webhook',
        idempotency,
      });
    },
  };
}

/**
 * Equal for calls that ask for the same. Not of the input, which a mapping may make of the time as
 * well, and not of the headers, of which some are others in a repeat: a date, the number of a try.
 */
function fingerprintOf({ body, query }: Message, trigger: CalledTrigger): string {
  const skill = [trigger.skill_category, trigger.skill_version, trigger.skill_name];
  return hash('sha256', canonicalJson([body, query, skill]));
}

/** What a trigger without a mapping makes of a body. */
function eventOf(body: unknown): Record<string, unknown> {
  return isObject(body) ? body : { event: body };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shownHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const shown = Object.entries(headers).filter(
    ([name]) => !secretHeaders.has(name) && !secretHeader.test(name),
  );
  return Object.fromEntries(shown.map(([name, value]) => [name, String(value)]));
}
