/** Shows the events of a job. */
import type { JobEvent } from '@skillwright/client';
import { type Io, type Output, writeJson } from './io.ts';
import { clean, state, styled } from './print.ts';

/** As `--json` prints it. */
export function writeEvent(io: Pick<Io, 'stdout'>, { id, type, data }: JobEvent): void {
  writeJson(io, { id, event: type, data });
}

/** A line for an event; null for one that a person need not see. */
export function eventLine(output: Output, { type, data }: JobEvent): string | null {
  const dim = (what: string) => styled(output, 'dim', what);
  switch (type) {
    case 'status':
      return statusLine(output, data);
    case 'log':
      return clean(data.message);
    case 'progress': {
      const percent = dim(`${Math.round(data.fraction * 100)} %`);
      return [percent, clean(data.note ?? '')].filter(Boolean).join(' ');
    }
    case 'message':
      return `${dim(`${clean(data.role)}:`)} ${clean(data.content)}`;
    case 'approval':
      return `${dim('asks a person:')} ${clean(data.title)}`;
    case 'tool_call':
      return `${dim('calls')} ${clean(data.tool)} ${dim(asText(data.input))}`;
    case 'tool_result':
      return `${dim('result of')} ${clean(data.tool)} ${dim(asText(data.error ?? data.output))}`;
    default:
      return null;
  }
}

type StatusData = Extract<JobEvent, { type: 'status' }>['data'];

function statusLine(output: Output, data: StatusData): string {
  const { status, attempt = 1, error, due_at: dueAt, run_at: runAt } = data;
  const notes = [
    status === 'active' && attempt > 1 ? `attempt ${attempt}` : '',
    dueAt === undefined ? '' : `until ${dueAt} at the latest`,
    error ? `${error.code}: ${clean(error.message)}` : '',
    runAt === undefined ? '' : `again at ${runAt}`,
  ].filter(Boolean);
  const note = notes.length > 0 ? ` ${styled(output, 'dim', notes.join(', '))}` : '';
  return `${state(output, status)}${note}`;
}

function asText(value: unknown): string {
  return clean(typeof value === 'string' ? value : JSON.stringify(value ?? null));
}
