import { Bot, type LucideIcon, Settings2, User } from 'lucide-react';
import type { ReactNode } from 'react';
import type { Message, TokenUsage } from '../api/conversations.ts';
import { Json } from '../ui/Code.tsx';
import { classes } from '../ui/classes.ts';
import { countText, Time } from '../ui/Time.tsx';
import { contentOf } from './content.ts';
import { Folded } from './Folded.tsx';
import { ToolCall } from './ToolCall.tsx';

type Tokens = TokenUsage['breakdown'][number];

const speakers: Record<string, { name: string; icon: LucideIcon; look: string }> = {
  user: { name: 'User', icon: User, look: 'bg-accent-soft text-accent-text' },
  assistant: { name: 'Assistant', icon: Bot, look: 'bg-good-soft text-good-text' },
  system: { name: 'System', icon: Settings2, look: 'bg-sunken text-muted' },
};

/** What was said, oldest first. `children` comes after it: what is being said. */
export function Transcript({
  messages,
  usage,
  children,
}: {
  messages: readonly Message[];
  usage: TokenUsage | undefined;
  children?: ReactNode;
}) {
  const tokens = new Map(usage?.breakdown.map((one) => [one.message_id, one]));
  return (
    <ol aria-label="Messages" className="flex flex-col">
      {messages.map((message, i) =>
        message.role === 'tool' ? (
          <li key={message.id} className="pt-1.5 pl-10 max-sm:pl-0">
            <ToolCall message={message} />
          </li>
        ) : (
          <Said
            key={message.id}
            by={message.role}
            at={message.created_at}
            tokens={tokens.get(message.id)}
          >
            {message.content === '' ? (
              <p className="text-muted italic">
                {messages[i + 1]?.role === 'tool'
                  ? 'Called tools without a word.'
                  : 'Said nothing.'}
              </p>
            ) : (
              <Body message={message} />
            )}
          </Said>
        ),
      )}
      {children}
    </ol>
  );
}

export function Said({
  by,
  at,
  tokens,
  children,
}: {
  /** A role of messages. */
  by: string;
  at?: string;
  tokens?: Tokens | undefined;
  children: ReactNode;
}) {
  const { name, icon: Icon, look } = speakers[by] ?? { name: by, icon: Bot, look: '' };
  return (
    <li className="flex gap-3 pt-5 first:pt-0">
      <span
        className={classes('flex size-7 shrink-0 items-center justify-center rounded-full', look)}
        aria-hidden
      >
        <Icon className="size-4" />
      </span>
      <div className="min-w-0 grow">
        <p className="mb-1 flex min-h-7 flex-wrap items-center gap-x-3 text-xs text-muted">
          <span className="text-[13px] font-semibold text-ink">{name}</span>
          {at && <Time value={at} />}
          {tokens && <Cost {...tokens} />}
        </p>
        {children}
      </div>
    </li>
  );
}

/** What cost nothing says nothing; what nobody knows is a dash. */
function Cost({ prompt_tokens, completion_tokens }: Tokens) {
  if (prompt_tokens === 0 && completion_tokens === 0) return null;
  return (
    <span className="ml-auto tabular-nums">
      {countText(prompt_tokens)} in · {countText(completion_tokens)} out
    </span>
  );
}

function Body({ message }: { message: Message }) {
  const content = contentOf(message);
  if (content.kind === 'data') return <Json label="Content" value={content.value} />;
  return (
    <>
      {content.name && <p className="mb-0.5 text-xs text-muted">{content.name}</p>}
      <Folded text={content.text} />
    </>
  );
}
