import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';
import type { JobEvent } from '../api/follow.ts';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { ArrowDown, ScrollText } from '../ui/icons.tsx';
import { Empty } from '../ui/Loading.tsx';
import { Status, Tag, type Tone } from '../ui/Status.tsx';

/** Pixels from the end within which one is at the end. */
const nearEnd = 24;

/** Other events are in the timeline: tokens of a model, and progress. */
const shown = ['status', 'log', 'message', 'tool_call', 'tool_result', 'approval'];
/** The events of a log that stands alone. */
const shownAlone = [...shown, 'progress', 'token'];

/**
 * The log of a job, which follows its end while the reader is there. `isAlone` also shows progress and streamed text
 * of models, in less space.
 */
export function Logs({
  events,
  isLive,
  isAlone = false,
}: {
  events: readonly JobEvent[];
  isLive: boolean;
  isAlone?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(isLive);
  const [scrolls, setScrolls] = useState(false);
  const lines = isAlone
    ? joined(events.filter(({ type }) => shownAlone.includes(type)))
    : events.filter(({ type }) => shown.includes(type));
  const hasLogs = lines.some(({ type }) => type !== 'status');
  // biome-ignore lint/correctness/useExhaustiveDependencies: each line that comes moves the end
  useLayoutEffect(() => {
    if (!box.current) return;
    const { scrollHeight, clientHeight } = box.current;
    setScrolls(scrollHeight > clientHeight + nearEnd);
    if (isFollowing) box.current.scrollTop = scrollHeight;
  }, [isFollowing, events.length]);
  return (
    <div className="relative">
      <div
        ref={box}
        role="log"
        aria-label="Log"
        // Each line would be read out while hundreds come.
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
          setFollowing(scrollTop + clientHeight >= scrollHeight - nearEnd)
        }
        className={classes(
          'overflow-y-auto rounded-b-lg py-2 font-mono text-xs leading-relaxed focus-visible:-outline-offset-2',
          isAlone ? 'max-h-80' : 'max-h-[65vh] min-h-24',
        )}
      >
        {lines.map((event) => (
          <Line key={event.id} event={event} />
        ))}
        {!hasLogs && !isAlone && (
          <Empty
            icon={<ScrollText />}
            title={isLive ? 'Nothing has been said yet' : 'The job said nothing'}
          >
            A skill writes lines here with <code>ctx.log('page 1 of 3')</code>.
          </Empty>
        )}
      </div>
      {!isFollowing && scrolls && (
        <Button
          size="small"
          icon={<ArrowDown />}
          onClick={() => setFollowing(true)}
          className="absolute right-4 bottom-3"
        >
          {isLive ? 'Follow' : 'To the end'}
        </Button>
      )}
    </div>
  );
}

function Line({ event: { type, data } }: { event: JobEvent }) {
  return (
    <div
      className={classes(
        'grid grid-cols-[6.5rem_minmax(0,1fr)] items-baseline gap-x-3 px-4 py-0.5 hover:bg-hover max-sm:grid-cols-1 max-sm:py-1',
        type === 'status' && 'my-1 bg-sunken py-1',
      )}
    >
      <time
        dateTime={String(data['at'])}
        title={String(data['at'])}
        className="text-muted tabular-nums"
      >
        {String(data['at']).slice(11, 23)}
      </time>
      <div className="flex min-w-0 flex-wrap items-baseline gap-x-2 gap-y-0.5">
        {(parts[type] ?? parts['log'])?.(data)}
      </div>
    </div>
  );
}

/** The pieces of one turn of a model make one line, which the whole message then takes the place of. */
function joined(events: readonly JobEvent[]): readonly JobEvent[] {
  const lines: JobEvent[] = [];
  for (const event of events) {
    const last = lines.at(-1);
    const { type, data } = event;
    if (last?.type === 'token' && last.data['step'] === data['step']) {
      if (type === 'token') {
        const text = `${last.data['text']}${data['text']}`;
        lines[lines.length - 1] = { ...last, data: { ...last.data, text } };
        continue;
      }
      if (type === 'message') lines.pop();
    }
    lines.push(event);
  }
  return lines;
}

type Data = JobEvent['data'];

const parts: Record<string, (data: Data) => ReactNode> = {
  status: (data) => (
    <span className="flex flex-wrap items-center gap-2 font-sans">
      <Status value={String(data['status'])} />
      {data['attempt'] !== undefined && `attempt ${data['attempt']}`}
      {data['status'] !== 'cancelled' && <Fault error={data['error']} />}
    </span>
  ),
  log: (data) => {
    const { level, ...fields } = (data['fields'] ?? {}) as Record<string, unknown>;
    return (
      <>
        {typeof level === 'string' && <Tag tone={levels[level] ?? 'neutral'}>{level}</Tag>}
        <span className="break-words whitespace-pre-wrap">{String(data['message'])}</span>
        {Object.entries(fields).map(([name, value]) => (
          <span key={name} className="break-all text-muted">
            {name}=<span className="text-ink">{brief(value)}</span>
          </span>
        ))}
      </>
    );
  },
  message: (data) => (
    <>
      <Tag tone="accent">{String(data['role'])}</Tag>
      <span className="break-words whitespace-pre-wrap">{String(data['content'])}</span>
    </>
  ),
  token: (data) => (
    <>
      <Tag tone="accent">assistant</Tag>
      <span className="break-words whitespace-pre-wrap">{String(data['text'])}</span>
    </>
  ),
  progress: (data) => (
    <span className="text-muted">
      {Math.round(Number(data['fraction']) * 100)} %{data['note'] ? ` · ${data['note']}` : ''}
    </span>
  ),
  approval: (data) => (
    <>
      <Tag tone="accent">asks</Tag>
      <span className="break-words">{String(data['title'])}</span>
    </>
  ),
  tool_call: (data) => (
    <>
      <Tag>call</Tag>
      {String(data['tool'])}
      <span className="break-all text-muted">{brief(data['input'])}</span>
    </>
  ),
  tool_result: (data) => (
    <>
      <Tag tone={data['error'] ? 'bad' : 'good'}>result</Tag>
      {String(data['tool'])}
      {data['error'] ? (
        <Fault error={data['error']} />
      ) : (
        <span className="break-all text-muted">{brief(data['output'])}</span>
      )}
    </>
  ),
};

const levels: Readonly<Record<string, Tone>> = {
  warn: 'warn',
  warning: 'warn',
  error: 'bad',
  fatal: 'bad',
};

function Fault({ error }: { error: unknown }) {
  if (!error) return null;
  const { code, message } = error as { code: string; message: string };
  return (
    <span className="min-w-0 break-words text-bad-text" title={code}>
      {message}
    </span>
  );
}

/** More is in the timeline and the conversation. */
const briefMax = 240;

function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > briefMax ? `${text.slice(0, briefMax)}…` : text;
}
