/** Follows a job's events, through disconnections, and shows them. */
import { setTimeout as elapsed } from 'node:timers/promises';
import { type Client, SkillwrightError, type StreamedEvent } from '@skillwright/client';
import { path } from './connection.ts';
import type { Output } from './io.ts';
import { clean, state, styled } from './print.ts';

const retryMs = [200, 500, 1_000, 2_000, 4_000];
const finalStatuses = ['completed', 'failed', 'cancelled'];

/** An event of a job's stream. */
export interface JobEvent extends StreamedEvent {
  readonly data: Readonly<Record<string, unknown>>;
}

export function isFinal(status: unknown): boolean {
  return finalStatuses.includes(String(status));
}

/** The events of a job from the first one on, until it ends. A stream that is cut is resumed. */
export async function* followJob(
  client: Client,
  jobId: string,
  signal: AbortSignal,
): AsyncGenerator<JobEvent> {
  let last: string | undefined;
  let cuts = 0;
  for (;;) {
    const headers = last === undefined ? {} : { 'last-event-id': last };
    const request = { method: 'GET' as const, path: path`/api/jobs/${jobId}/events`, headers };
    try {
      for await (const event of client.stream({ ...request, signal })) {
        if (event.id !== '') last = event.id;
        cuts = 0;
        yield event as JobEvent;
        if (isEnd(event as JobEvent)) return;
      }
    } catch (error) {
      if (!isPassing(error) || retryMs[cuts] === undefined) throw error;
    }
    signal.throwIfAborted();
    await elapsed(retryMs[cuts] ?? 5_000, undefined, { signal });
    cuts += 1;
  }
}

/** Whether the same request may succeed later: there was no answer, or the platform is busy or restarts. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof SkillwrightError)) return error instanceof TypeError;
  return [0, 429, 502, 503, 504].includes(error.status);
}

function isEnd({ event, data }: JobEvent): boolean {
  return event === 'status' && isFinal(data['status']);
}

/** A line for an event; null for one that a person need not see. */
export function eventLine(output: Output, { event, data }: JobEvent): string | null {
  const text = (name: string) => clean(asText(data[name]));
  const dim = (what: string) => styled(output, 'dim', what);
  switch (event) {
    case 'status':
      return statusLine(output, data);
    case 'log':
      return text('message');
    case 'progress': {
      const { fraction, note } = data;
      const percent = typeof fraction === 'number' ? `${Math.round(fraction * 100)} %` : '';
      return [dim(percent), typeof note === 'string' ? clean(note) : ''].filter(Boolean).join(' ');
    }
    case 'message':
      return `${dim(`${text('role')}:`)} ${text('content')}`;
    case 'tool_call':
      return `${dim('calls')} ${text('tool')} ${dim(text('input'))}`;
    case 'tool_result':
      return `${dim('result of')} ${text('tool')} ${dim(text(data['error'] ? 'error' : 'output'))}`;
    default:
      return null;
  }
}

function statusLine(output: Output, data: JobEvent['data']): string {
  const { status, attempt, error, due_at: dueAt, run_at: runAt } = data;
  const notes = [
    status === 'active' && Number(attempt) > 1 ? `attempt ${attempt}` : '',
    typeof dueAt === 'string' ? `until ${dueAt} at the latest` : '',
    isError(error) ? `${error.code}: ${clean(error.message)}` : '',
    typeof runAt === 'string' ? `again at ${runAt}` : '',
  ].filter(Boolean);
  const note = notes.length > 0 ? ` ${styled(output, 'dim', notes.join(', '))}` : '';
  return `${state(output, String(status))}${note}`;
}

function isError(error: unknown): error is { code: string; message: string } {
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
