import type { ReactNode } from 'react';
import type { Message } from '../api/conversations.ts';
import { ErrorWords } from '../jobs/ErrorWords.tsx';
import { type StepUsage, usageText } from '../jobs/step-usage.ts';
import { ChevronRight, Wrench } from '../ui/icons.tsx';
import { Status } from '../ui/Status.tsx';
import { Duration, Time } from '../ui/Time.tsx';
import { Labelled } from '../ui/Value.tsx';
import { toolUseOf } from './content.ts';
import { Folded } from './Folded.tsx';

/** Characters of a tool's input that fit into its line. */
const glimpseMax = 160;

/** The tokens of models that the tool call used itself. */
export interface Took {
  readonly ms: number | null;
  readonly usage: StepUsage | undefined;
}

/** A recorded tool call. */
export function ToolCall({ message, took }: { message: Message; took: Took | undefined }) {
  const use = toolUseOf(message);
  return (
    <ToolCard
      tool={use?.tool ?? 'Tool'}
      glimpse={use ? JSON.stringify(use.input) : message.content}
      aside={
        <>
          {use?.error && <Status value="failed" />}
          {took?.usage && <span>{usageText(took.usage)}</span>}
          {took?.ms != null ? <Duration ms={took.ms} /> : <Time value={message.created_at} />}
        </>
      }
    >
      {use === undefined && <Folded text={message.content} />}
      {use && <Labelled label="Called with" value={use.input} />}
      {use && use.error === undefined && <Labelled label="Came back" value={use.output} />}
      {use?.error && <ErrorWords error={use.error} />}
    </ToolCard>
  );
}

/** A tool call in one line that opens to all details. */
export function ToolCard({
  tool,
  glimpse,
  aside,
  children,
}: {
  tool: string;
  glimpse: string | undefined;
  aside: ReactNode;
  children: ReactNode;
}) {
  return (
    <details className="group rounded-md border bg-surface open:shadow-low">
      <summary className="flex min-h-9 items-center gap-2 rounded-md px-3 py-1.5 text-[13px] list-none hover:bg-hover [&::-webkit-details-marker]:hidden">
        <ChevronRight
          aria-hidden
          className="size-3.5 shrink-0 text-muted transition-transform group-open:rotate-90"
        />
        <Wrench className="size-3.5 shrink-0 text-muted" aria-hidden />
        <span className="shrink-0 font-medium max-sm:min-w-0 max-sm:shrink max-sm:truncate">
          {tool}
        </span>
        <span className="min-w-0 grow truncate font-mono text-xs text-muted max-sm:hidden">
          {glimpse?.slice(0, glimpseMax)}
        </span>
        <span className="ml-auto flex shrink-0 items-center gap-2 text-xs text-muted tabular-nums">
          {aside}
        </span>
      </summary>
      <div className="flex flex-col gap-2 border-t p-3">{children}</div>
    </details>
  );
}
