/**
 * The waits of a run: for a moment, an event, a person, a job of its own. A wait is on record before it
 * begins. Its promise resolves with what is recorded; if the run is suspended meanwhile, its promise never
 * settles, and the repeated run gets the result.
 */
import { isObject } from '../../../kernel/json.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { eventKeyCharsMax, titleCharsMax } from '../../../kernel/step-bounds.ts';
import type { Decision, Duration, ReceivedEvent } from '../../skills/definition.ts';
import { ask } from './asks.ts';
import { defaultWaitMs, readDuration, readMoment } from './durations.ts';
import { noteTime, type Part, takeNumbers } from './part.ts';
import { readFields, readName, readText } from './step-arguments.ts';
import { refuseWithinStep } from './step-scope.ts';
import { writeValue } from './step-values.ts';

export async function sleep(part: Part, name: string, duration: Duration): Promise<void> {
  const what = begin('ctx.sleep', name);
  const ms = readDuration(duration, `the duration of ${what}`);
  await wait(part, 'sleep', name, { ms });
}

export async function sleepUntil(
  part: Part,
  name: string,
  moment: Date | string | number,
): Promise<void> {
  const what = begin('ctx.sleepUntil', name);
  const until = readMoment(moment, `the moment of ${what}`, part.platform.clock.now());
  await wait(part, 'sleep', name, { until });
}

export async function waitForEvent<Data>(
  part: Part,
  name: string,
  wanted: {
    readonly event: string;
    readonly key?: string | number | null | undefined;
    readonly timeout?: Duration | undefined;
  },
): Promise<ReceivedEvent<Data> | null> {
  const what = begin('ctx.waitForEvent', name);
  const fields = readFields(wanted, ['event', 'key', 'timeout'], what);
  const event = readName(fields['event'], `the event of ${what}`);
  const timeoutMs = readTimeout(fields['timeout'], what);
  const key = readKey(fields['key'], what);
  const received = await wait(part, 'event', name, { event, key, timeoutMs });
  return received as ReceivedEvent<Data> | null;
}

export async function approve<Answer extends object>(
  part: Part,
  name: string,
  request: {
    readonly title: string;
    readonly details?: object | undefined;
    readonly fields?: object | undefined;
    readonly timeout?: Duration | undefined;
  },
): Promise<Decision<Answer>> {
  const what = begin('ctx.approve', name);
  const known = ['title', 'details', 'fields', 'timeout'];
  const { title, details, fields, timeout } = readFields(request, known, what);
  readText(title, titleCharsMax, `the title of ${what}`);
  if (details !== undefined && !isObject(details)) {
    throw permanentError(`the details of ${what} must be an object`);
  }
  writeValue(details, `the details of ${what} hold`);
  if (fields !== undefined && !isObject(fields)) {
    throw permanentError(`the fields of ${what} must be a JSON Schema of an object`);
  }
  writeValue(fields, `the fields of ${what} hold`);
  const timeoutMs = readTimeout(timeout, what);
  const decision = await wait(part, 'approval', name, {
    title,
    details,
    ...(fields !== undefined && { fields }),
    timeoutMs,
  });
  return decision as Decision<Answer>;
}

export async function runJob<Output>(
  part: Part,
  name: string,
  skill: string,
  input: unknown,
): Promise<Output> {
  const what = begin('ctx.run', name);
  if (typeof skill !== 'string' || !/^[^/]+\/[^/]+\/[^/]+$/.test(skill)) {
    throw permanentError(`the skill of ${what} must be named 'category/version/name'`);
  }
  writeValue(input, `the input of ${what} holds`);
  return (await wait(part, 'run', name, { skill, input: input ?? null })) as Output;
}

/** Checks where it is called and its name; returns what errors call it. */
function begin(verb: string, name: unknown): string {
  refuseWithinStep(verb);
  return `${verb}(${JSON.stringify(readName(name, `the name of ${verb}`))})`;
}

function readTimeout(value: unknown, what: string): number {
  return value === undefined ? defaultWaitMs : readDuration(value, `the timeout of ${what}`);
}

/** Null for an event without a key. */
function readKey(value: unknown, what: string): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'number' && Number.isFinite(value) ? `${value}` : value;
  return readText(text, eventKeyCharsMax, `the key of ${what}`);
}

async function wait(
  part: Part,
  kind: 'sleep' | 'event' | 'approval' | 'run',
  name: string,
  wanted: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const nth = takeNumbers(part, name);
  const answer = await ask(part, 'wait', { kind, name, nth, ...wanted });
  const { value, at } = answer as { readonly value?: unknown; readonly at?: number };
  noteTime(part.run, at);
  return value;
}
