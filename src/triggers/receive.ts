/**
 * What a trigger does with a request to its address: checks the signature, makes the skill's input
 * of what came, and starts a run in the name of the key that made the trigger. What only the
 * trigger's owner can mend is told as `agent.error`, and to the sender no more than that there is
 * nothing here.
 */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Database } from '../database/database.ts';
import { appendEvents } from '../events/outbox.ts';
import type { AcceptedJob } from '../jobs/accept.ts';
import type { Execute, Target } from '../jobs/execute.ts';
import type { Caller } from '../kernel/caller.ts';
import type { Clock } from '../kernel/clock.ts';
import { invalid, PlatformError } from '../kernel/errors.ts';
import type { Mappings } from './mapping.ts';
import { payloadOf } from './payload.ts';
import { requireSignature } from './signature.ts';
import { type ActiveTrigger, triggerNotFound } from './triggers.ts';

/** A trigger tells of its errors at most this often, however often it is called. */
const tellEveryMs = 60_000;
/** Triggers whose last error is remembered; the oldest goes first. */
const toldMax = 10_000;

/** What no expression sees, because it proves who somebody is. */
const secretHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'proxy-authorization',
  'webhook-signature',
  'x-admin-secret',
  'x-api-key',
  'x-gitlab-token',
  'x-hub-signature',
  'x-hub-signature-256',
]);

/** A request as it arrived. */
export interface Call {
  readonly headers: IncomingHttpHeaders;
  /** The body, byte by byte; empty when there is none. */
  readonly bytes: Buffer;
  /** Its query, or `400`. */
  query(): Readonly<Record<string, unknown>>;
  /** What makes repeats of it one job, or `400`. */
  idempotencyKey(): string | undefined;
}

export type Receive = ReturnType<typeof createReceive>;

export function createReceive(parts: {
  database: Database;
  clock: Clock;
  apiKeys: Pick<ApiKeys, 'callerById'>;
  execute: Execute;
  mappings: Pick<Mappings, 'evaluate'>;
}) {
  const { database, clock, apiKeys, execute, mappings } = parts;
  const told = new Map<string, number>();

  /** Records `agent.error`, unless the trigger told of an error within the last minute. */
  async function tell(trigger: ActiveTrigger, code: string, why: string): Promise<void> {
    const last = told.get(trigger.id);
    if (last !== undefined && clock.monotonic() - last < tellEveryMs) return;
    told.delete(trigger.id);
    if (told.size >= toldMax) told.delete(told.keys().next().value as string);
    told.set(trigger.id, clock.monotonic());
    const event = {
      type: 'agent.error',
      organizationId: trigger.organization_id,
      agentId: trigger.agent_id,
      data: { code, message: `The trigger ${trigger.id} did not run: ${why}.`, job_id: null },
    } as const;
    try {
      await database.write((tx) => appendEvents(tx, [event], clock.now()));
    } catch (error) {
      told.delete(trigger.id);
      throw error;
    }
  }

  async function targetOf(trigger: ActiveTrigger, caller: Caller): Promise<Target> {
    const { skill_category: category, skill_version: version, skill_name: skillName } = trigger;
    const name = `${category}/${version}/${skillName}`;
    try {
      return await execute.target(caller, { category, version, skillName }, () => trigger.agent_id);
    } catch (error) {
      const code = error instanceof PlatformError ? error.code : undefined;
      if (code === 'skill_not_found') await tell(trigger, code, `no active skill matches ${name}`);
      if (code !== 'insufficient_scope') throw error;
      await tell(trigger, code, `the key that made it lacks a scope that ${name} requires`);
      throw triggerNotFound();
    }
  }

  async function inputOf(trigger: ActiveTrigger, { skill }: Target, call: Call): Promise<unknown> {
    const body = payloadOf(call.headers, call.bytes);
    const query = call.query();
    const mapped =
      trigger.mapping === null
        ? eventOf(body)
        : await mappings.evaluate(trigger.organization_id, trigger.mapping, {
            body,
            headers: shownHeaders(call.headers),
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
    async callerOf(trigger: ActiveTrigger): Promise<Caller> {
      const caller = await apiKeys.callerById(trigger.api_key_id);
      if (caller !== undefined) return caller;
      await tell(trigger, 'invalid_api_key', 'the key that made it is revoked or expired');
      throw triggerNotFound();
    },

    /** Starts the run that a request asks for; whether it is an earlier one again. */
    async accept(
      trigger: ActiveTrigger,
      caller: Caller,
      call: Call,
    ): Promise<{ job: AcceptedJob; isReplay: boolean }> {
      if (trigger.signing_secret !== null) {
        requireSignature(call.headers, trigger.signing_secret, call.bytes, clock.now());
      }
      const target = await targetOf(trigger, caller);
      const key = call.idempotencyKey();
      const input = await inputOf(trigger, target, call);
      // Of the bytes and not of the input, which a mapping may make of the time as well.
      const fingerprint = createHash('sha256').update(call.bytes).digest('hex');
      return execute.run(caller, target, input, {
        userId: trigger.name,
        triggerType: 'webhook',
        idempotency: key === undefined ? undefined : { owner: trigger.id, key, fingerprint },
      });
    },
  };
}

/** What a trigger without a mapping makes of a body. */
function eventOf(body: unknown): Record<string, unknown> {
  return isObject(body) ? body : { event: body };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shownHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const shown = Object.entries(headers).filter(([name]) => !secretHeaders.has(name));
  return Object.fromEntries(shown.map(([name, value]) => [name, String(value)]));
}
