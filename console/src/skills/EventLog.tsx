import type { JobEvent } from '../api/stream.ts';
import { classes } from '../ui/classes.ts';

/** Of a run that says more, the last ones are shown. */
const shownMax = 500;

interface Line {
  readonly id: string;
  readonly type: string;
  readonly at: string;
  readonly text: string;
  readonly isBad: boolean;
}

/** What a run says as it happens, one line an event. */
export function EventLog({ events }: { events: readonly JobEvent[] }) {
  const lines = linesOf(events);
  const shown = lines.slice(-shownMax);
  return (
    <div
      role="log"
      aria-label="Events of the run"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
      tabIndex={0}
      className="flex max-h-80 flex-col-reverse overflow-y-auto"
    >
      <ol className="text-xs leading-relaxed">
        {lines.length > shown.length && (
          <li className="px-4 py-1 text-muted">{lines.length - shown.length} earlier ones</li>
        )}
        {shown.map(({ id, type, at, text, isBad }) => (
          <li key={id} className="flex items-baseline gap-3 px-4 py-1 hover:bg-hover">
            <time
              dateTime={at}
              title={at}
              className="shrink-0 text-muted tabular-nums max-sm:hidden"
            >
              {at.slice(11, 23)}
            </time>
            <span className="w-16 shrink-0 text-muted">{type}</span>
            <span
              className={classes(
                'min-w-0 break-words whitespace-pre-wrap',
                isBad && 'text-bad-text',
                type === 'log' && 'font-mono',
              )}
            >
              {text}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** What a model says comes in many small pieces: those that follow each other are one line. */
function linesOf(events: readonly JobEvent[]): readonly Line[] {
  const lines: Line[] = [];
  for (const { id, type, data } of events) {
    const last = lines.at(-1);
    if (type === 'token' && last?.type === 'says') {
      lines[lines.length - 1] = { ...last, text: last.text + String(data['text']) };
      continue;
    }
    // What was said piece by piece is not said again as a whole.
    if (type === 'message' && last?.type === 'says' && last.text === data['content']) continue;
    lines.push({
      id,
      at: String(data['at'] ?? ''),
      isBad: 'error' in data,
      ...wordsOf(type, data),
    });
  }
  return lines;
}

function wordsOf(type: string, data: Record<string, unknown>): { type: string; text: string } {
  switch (type) {
    case 'status':
      return { type, text: statusText(data) };
    case 'log': {
      const fields = data['fields'] === undefined ? '' : ` ${JSON.stringify(data['fields'])}`;
      return { type, text: `${data['message']}${fields}` };
    }
    case 'progress': {
      const percent = `${Math.round(Number(data['fraction']) * 100)} %`;
      return { type, text: data['note'] ? `${percent} – ${data['note']}` : percent };
    }
    case 'message':
      return { type: String(data['role']), text: String(data['content']) };
    case 'token':
      return { type: 'says', text: String(data['text']) };
    case 'tool_call':
      return { type: 'calls', text: `${data['tool']} ${JSON.stringify(data['input'])}` };
    case 'tool_result': {
      const { tool, error, output } = data;
      return { type: 'answer', text: `${tool} ${JSON.stringify(error ?? output)}` };
    }
    default:
      return { type, text: JSON.stringify(data) };
  }
}

function statusText({ status, attempt, error, run_at }: Record<string, unknown>): string {
  const { message } = (error ?? {}) as { message?: string };
  const why = message === undefined ? '' : `: ${message}`;
  if (status === 'queued' && run_at !== undefined) {
    return `attempt ${attempt} failed${why}; tried again at ${String(run_at).slice(11, 19)} UTC`;
  }
  if (status === 'active') return `attempt ${attempt} begins`;
  return `${status}${why}`;
}
