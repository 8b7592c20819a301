import { ChevronRight, Wrench } from 'lucide-react';
import type { Message } from '../api/conversations.ts';
import { ErrorWords } from '../jobs/ErrorWords.tsx';
import { Status } from '../ui/Status.tsx';
import { Time } from '../ui/Time.tsx';
import { Labelled } from '../ui/Value.tsx';
import { toolUseOf } from './content.ts';
import { Folded } from './Folded.tsx';

/** Characters of a tool's input that fit into its line. */
const glimpseMax = 160;

/** A tool call in a line; opened, its whole input and its result. */
export function ToolCall({ message }: { message: Message }) {
  const use = toolUseOf(message);
  const glimpse = use ? JSON.stringify(use.input) : message.content;
  return (
    <details className="group rounded-md border bg-surface open:shadow-low">
      <summary className="flex min-h-9 items-center gap-2 rounded-md px-3 py-1.5 text-[13px] list-none hover:bg-hover [&::-webkit-details-marker]:hidden">
        <ChevronRight
          aria-hidden
          className="size-3.5 shrink-0 text-muted transition-transform group-open:rotate-90"
        />
        <Wrench className="size-3.5 shrink-0 text-muted" aria-hidden />
        <span className="shrink-0 font-medium max-sm:min-w-0 max-sm:shrink max-sm:truncate">
          {use?.tool ?? 'Tool'}
        </span>
        <span className="min-w-0 grow truncate font-mono text-xs text-muted max-sm:hidden">
          {glimpse?.slice(0, glimpseMax)}
        </span>
        <span className="ml-auto flex shrink-0 items-center gap-2 text-xs text-muted">
          {use?.error && <Status value="failed" />}
          <Time value={message.created_at} />
        </span>
      </summary>
      <div className="flex flex-col gap-2 border-t p-3">
        {use === undefined && <Folded text={message.content} />}
        {use && <Labelled label="Called with" value={use.input} />}
        {use && use.error === undefined && <Labelled label="Came back" value={use.output} />}
        {use?.error && <ErrorWords error={use.error} />}
      </div>
    </details>
  );
}
