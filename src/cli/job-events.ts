/** Shows the events of a job. */
import type { Client, JobEvent as ClientEvent } from '@skillwright/client';
import type { Output } from './io.ts';
import { clean, state, styled } from './print.ts';

/** An event of a job's stream, as `--json` prints it. */
export interface JobEvent {
  readonly id: string;
  readonly event: ClientEvent['type'];
  readonly data: Readonly<Record<string, unknown>>;
}

/** The events of a job from the first one on: until it ends, or with `follow: false` those so far. */
export async function* followJob(
  client: Client,
  jobId: string,
  options: { signal: AbortSignal; follow?: boolean },
): AsyncGenerator<JobEvent> {
  for await (const { id, type, data } of client.job(jobId).events(options)) {
    yield { id, event: type, data: { ...data } };
  }
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
    case 'approval':
      return `${dim('asks a person:')} ${text('title')}`;
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
