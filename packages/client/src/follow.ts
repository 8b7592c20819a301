/** The events of a job, each once and in order, over as many connections as it takes. */
import { SkillwrightError } from './errors.ts';
import { readEvents } from './event-stream.ts';
import type { components } from './generated/schema.ts';
import { withOriginHint } from './other-origin.ts';
import {
  asFault,
  type CallOptions,
  mayPass,
  type RequestsDeps,
  reportRetry,
  send,
  sendOnce,
} from './requests.ts';
import { type Attempts, deadlineOf, patienceOf, pauseAfterFailure, sleep } from './retries.ts';

type Job = components['schemas']['Job'];

type Streamed = components['schemas']['JobEvent'];

/** An event: what `after` takes, its type, and what it tells. */
export type JobEvent = {
  [Type in Streamed['event']]: {
    readonly id: string;
    readonly type: Type;
    readonly data: Extract<Streamed, { event: Type }>['data'];
  };
}[Streamed['event']];

export interface FollowOptions extends CallOptions {
  /** False: the events that are recorded so far, without those to come. */
  readonly follow?: boolean | undefined;
  /** The id of the last event that is known. */
  readonly after?: string | undefined;
}

/** The platform writes something every 15 seconds: a stream that is silent for longer is broken. */
const silentMsMax = 45_000;

/** Yields the events until the job has ended, or those so far. */
export async function* followJob(
  deps: RequestsDeps,
  jobId: string,
  options: FollowOptions,
): AsyncGenerator<JobEvent> {
  const path = pathOf(jobId);
  const { signal, clear } = deadlineOf(options);
  let last = options.after;
  let attempts = noneFailed(deps);
  try {
    for (;;) {
      let fault: SkillwrightError | undefined;
      let isSilent = true;
      try {
        // A proxy may cut a stream again and again while a job waits: what is alive in between ends the failures.
        const onAlive = () => {
          attempts = noneFailed(deps);
        };
        for await (const event of eventsOf(deps, path, { last, options, signal, onAlive })) {
          last = event.id;
          isSilent = false;
          yield event;
          if (isEnd(event)) return;
        }
        if (options.follow === false) return;
        // A stream ends with its platform; without any event it ends where `after` was the last one.
        if (isSilent && (await hasEnded(deps, path, signal))) return;
      } catch (error) {
        if (signal?.aborted || !mayPass(error, true)) throw error;
        fault = error;
      }
      const error = fault ?? brokenOff(jobId);
      const pauseMs = pauseAfterFailure(attempts, error.retryAfterMs);
      if (pauseMs === null) throw await withOriginHint(deps, error, signal);
      reportRetry(deps, attempts, { error, pauseMs });
      await sleep(pauseMs, signal);
    }
  } finally {
    clear();
  }
}

function noneFailed(deps: RequestsDeps): Attempts {
  const { max } = deps.retries;
  return { failed: 0, retriesMax: max, patienceMs: patienceOf(max), since: undefined };
}

function brokenOff(jobId: string): SkillwrightError {
  const message = `The events of the job ${jobId} broke off`;
  return new SkillwrightError(message, { code: 'unreachable', status: 0 });
}

/** The events of one connection. */
async function* eventsOf(
  deps: RequestsDeps,
  path: string,
  {
    last,
    options,
    signal,
    onAlive,
  }: {
    last: string | undefined;
    options: FollowOptions;
    signal: AbortSignal | undefined;
    onAlive: () => void;
  },
): AsyncGenerator<JobEvent> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), deps.timeoutMs);
  const onBytes = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), silentMsMax);
  };
  try {
    const resume = last === undefined ? {} : { 'last-event-id': last };
    const headers = { accept: 'text/event-stream', ...resume, ...options.headers };
    const request = {
      method: 'GET',
      path: `${path}/events${options.follow === false ? '?follow=false' : ''}`,
      headers,
      signal,
    };
    const { body } = await sendOnce(deps, request, silent.signal);
    onBytes();
    if (body === null) return;
    const onBody = () => {
      onBytes();
      onAlive();
    };
    try {
      for await (const { id, event, data } of readEvents(body, onBody)) {
        yield { id, type: event, data } as JobEvent;
      }
    } catch (error) {
      throw asFault(deps, error, signal, silent.signal);
    }
  } finally {
    clearTimeout(timer);
  }
}

async function hasEnded(
  deps: RequestsDeps,
  path: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { status } = (await send(deps, { method: 'GET', path, signal })) as Job;
  return isFinal(status);
}

function isEnd({ type, data }: JobEvent): boolean {
  return type === 'status' && isFinal(data.status);
}

/** Where the API has a job. */
export function pathOf(jobId: string): string {
  return `/api/jobs/${encodeURIComponent(jobId)}`;
}

/** Whether a job of this status never changes again. */
export function isFinal(status: string): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}
