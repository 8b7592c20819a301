import { useEffect } from 'react';
import { ApiError } from '../api/client.ts';
import { LiveAnswer } from '../conversations/LiveAnswer.tsx';
import { Said, Transcript } from '../conversations/Transcript.tsx';
import type { Turn } from '../conversations/turns.ts';
import { Button } from '../ui/Button.tsx';
import { Empty, Problem, Skeleton } from '../ui/Loading.tsx';
import { countText } from '../ui/Time.tsx';
import { type Given, useChat } from './useChat.ts';
import type { Anew } from './useSending.ts';

export function ChatTranscript({
  conversationId,
  given,
  onRunning,
  onEarlier,
  onRetry,
  onAnew,
}: {
  conversationId: string;
  given: Given | undefined;
  /** Called with the active job, undefined without one. */
  onRunning: (jobId: string | undefined) => void;
  /** Called before earlier messages are added above. */
  onEarlier: () => void;
  /** Undefined where no message may be written. */
  onRetry: ((turn: Turn) => void) | undefined;
  /** Writes a message anew, or has it answered again. Undefined where no message may be written. */
  onAnew:
    | ((
        how: 'write' | 'answer',
        said: Anew & { readonly text: string; readonly files: readonly string[] },
      ) => void)
    | undefined;
}) {
  const chat = useChat(conversationId, given);
  const { conversation, running, unread, earlierCount } = chat;
  useEffect(() => onRunning(running), [onRunning, running]);
  if (conversation.error instanceof ApiError && conversation.error.status === 404) {
    return <Empty title="This conversation is gone">It is deleted with its last job.</Empty>;
  }
  if (!chat.isReady && unread === undefined) {
    const error = conversation.error ?? chat.error;
    return error ? <Problem error={error} /> : <Skeleton />;
  }
  return (
    <>
      {earlierCount > 0 && (
        <p className="pb-3 text-center">
          <Button
            size="small"
            look="quiet"
            onClick={() => {
              onEarlier();
              chat.showEarlier();
            }}
          >
            Show earlier messages ({countText(earlierCount)})
          </Button>
        </p>
      )}
      <Transcript
        turns={chat.turns}
        usage={chat.usage}
        onRetry={running ? undefined : onRetry}
        onAnew={
          running || onAnew === undefined
            ? undefined
            : (how, { messageId, ...said }) => {
                const isFirst = earlierCount === 0 && chat.messages[0]?.id === messageId;
                onAnew(how, { messageId, isFirst, ...said });
              }
        }
      >
        {unread !== undefined && <Unread text={unread} />}
        {running !== undefined && (
          <LiveAnswer
            key={running}
            conversationId={conversationId}
            jobId={running}
            shown={chat.messages}
          />
        )}
      </Transcript>
      <p role="status" className="sr-only">
        {chat.said}
      </p>
    </>
  );
}

/** A message that is being sent. */
export function Unread({ text }: { text: string }) {
  return (
    <Said by="user">
      <p className="leading-relaxed break-words whitespace-pre-wrap opacity-70">{text}</p>
    </Said>
  );
}
