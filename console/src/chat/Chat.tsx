/** A chat with an agent: its conversations, the messages of one, and overrides of the agent for this chat. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { AgentForSession } from '../api/agents.ts';
import type { Overrides } from '../api/chat.ts';
import { conversationQuery } from '../api/conversations.ts';
import { useMissingScopes } from '../shell/session.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { ArrowDown, MessagesSquare, Plus, SlidersHorizontal } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { Empty } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Attached } from './Attached.tsx';
import { ChatList } from './ChatList.tsx';
import { ChatTranscript, Unread } from './ChatTranscript.tsx';
import { Composer } from './Composer.tsx';
import { useKept } from './kept.ts';
import { TrialPanel } from './TrialPanel.tsx';
import { useAttached } from './useAttached.ts';
import type { Given } from './useChat.ts';
import { type Anew, useSending } from './useSending.ts';
import { useStickToEnd } from './useStickToEnd.ts';

interface ChatProps {
  readonly agent: AgentForSession;
  readonly conversationId: string | undefined;
}

export function Chat({ agent, conversationId }: ChatProps) {
  const [given, setGiven] = useState<Given>();
  const [overrides, setOverrides] = useKept<Overrides>(`trial ${agent.id}`);
  // Stored by conversation, because each continues for its own user.
  const [users = {}, setUsers] = useKept<Record<string, string>>(`users ${agent.id}`);
  const place = conversationId ?? 'new';
  const user = users[place] ?? '';
  const conversation = useQuery({
    ...conversationQuery(conversationId ?? ''),
    enabled: conversationId !== undefined,
  });
  /** The open panel on narrow screens. */
  const [opened, setOpened] = useState<'list' | 'settings'>();
  const [room, setRoom] = useState({ n: 0, conversationId });
  if (room.conversationId !== conversationId) {
    // A conversation that began here goes on in the same room.
    const isSame = room.conversationId === undefined && given?.conversationId === conversationId;
    setRoom({ n: isSame ? room.n : room.n + 1, conversationId });
  }
  const missing = agent.missing_scopes;
  // The tab may have kept overrides from before the agent got skills that the session lacks the scopes for.
  const used = missing.length > 0 ? null : (overrides ?? null);
  const toggle = (part: typeof opened) => setOpened(opened === part ? undefined : part);
  return (
    <div className="grid items-start gap-4 lg:grid-cols-[13rem_minmax(0,1fr)] xl:grid-cols-[12rem_minmax(0,1fr)_17rem] 2xl:grid-cols-[15rem_minmax(0,1fr)_22rem]">
      <div className="flex flex-wrap gap-2 lg:col-span-full xl:hidden">
        <Button
          icon={<MessagesSquare />}
          size="small"
          className="lg:hidden"
          aria-expanded={opened === 'list'}
          onClick={() => toggle('list')}
        >
          Conversations
        </Button>
        <Button
          icon={<SlidersHorizontal />}
          size="small"
          aria-expanded={opened === 'settings'}
          onClick={() => toggle('settings')}
        >
          Instructions{used ? ' (not saved)' : ''}
        </Button>
      </div>
      <Section
        className={classes(
          'max-h-[calc(100dvh-11rem)] overflow-y-auto lg:sticky lg:top-4',
          opened !== 'list' && 'max-lg:hidden',
        )}
        title="Chats"
        actions={
          <ButtonLink
            to="/agents/$agentId"
            params={{ agentId: agent.id }}
            search={{}}
            size="small"
            icon={<Plus />}
          >
            New
          </ButtonLink>
        }
      >
        <ChatList agentId={agent.id} current={conversationId} />
      </Section>
      <Room
        key={room.n}
        agent={agent}
        conversationId={conversationId}
        given={given?.conversationId === conversationId ? given : undefined}
        onGiven={setGiven}
        overrides={used}
        user={user}
      />
      <Section
        title="This chat"
        className={classes(
          'max-xl:col-span-full max-xl:-order-1 max-xl:col-start-1',
          opened !== 'settings' && 'max-xl:hidden',
        )}
      >
        <TrialPanel
          agent={agent}
          missing={missing}
          overrides={used}
          onOverrides={(next) => setOverrides(next ?? undefined)}
          user={user}
          userOfConversation={conversation.data?.user_id}
          onUser={(next) => setUsers({ ...users, [place]: next })}
        />
      </Section>
    </div>
  );
}

/** The messages, and the field to write one. */
function Room({
  agent,
  conversationId,
  given,
  onGiven,
  overrides,
  user,
}: ChatProps & {
  given: Given | undefined;
  onGiven: (given: Given) => void;
  overrides: Overrides | null;
  user: string;
}) {
  const navigate = useNavigate();
  const [text = '', setText] = useKept<string>(`message ${agent.id} ${conversationId ?? 'new'}`);
  const [running, setRunning] = useState<string>();
  const [anew, setAnew] = useState<Anew>();
  const field = useRef<HTMLTextAreaElement>(null);
  const attached = useAttached(user);
  const stick = useStickToEnd();
  const sending = useSending({
    agentId: agent.id,
    conversationId: conversationId ?? null,
    overrides,
    user,
    running,
    onGiven(next) {
      // An answer that was asked for again leaves what is being written.
      if (next.task === text.trim()) {
        setText(undefined);
        attached.set([]);
      }
      setAnew(undefined);
      onGiven(next);
      stick.toEnd();
      if (next.conversationId === conversationId) return;
      const search = { conversation: next.conversationId };
      void navigate({
        to: '/agents/$agentId',
        params: { agentId: agent.id },
        search,
        // From a fork the way back leads to what was said before.
        replace: conversationId === undefined,
      });
    },
  });
  const isPaused = agent.status === 'paused';
  const missing = useMissingScopes(['agent']);
  const isClosed = isPaused || missing.length > 0;
  return (
    <Section
      flush
      className="relative lg:sticky lg:top-4 [&>div]:flex [&>div]:h-[calc(100dvh-11rem)] [&>div]:min-h-80 max-xl:[&>div]:h-[calc(100dvh-14rem)] max-sm:[&>div]:h-[calc(100dvh-20rem)] [&>div]:flex-col"
    >
      <section
        ref={stick.box}
        aria-label="Messages of the chat"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
        className="min-h-0 grow overflow-y-auto overscroll-contain p-4 [overflow-anchor:none]"
      >
        <div ref={stick.content}>
          {conversationId !== undefined ? (
            <ChatTranscript
              conversationId={conversationId}
              given={given}
              onRunning={setRunning}
              onEarlier={stick.keepPlace}
              onRetry={isClosed ? undefined : sending.retry}
              onAnew={
                isClosed
                  ? undefined
                  : (how, { text: said, files, ...of }) => {
                      if (how === 'answer') return sending.sendAnew(said, files, of);
                      setAnew(of);
                      attached.set(files);
                      setText(said);
                      field.current?.focus();
                    }
              }
            />
          ) : sending.task !== undefined ? (
            <ol>
              <Unread text={sending.task} />
            </ol>
          ) : (
            <Empty icon={<MessagesSquare />} title={`Write to ${agent.name || agent.id}`}>
              {agent.description || 'Its answer, and the tools that it calls, are shown here.'}
            </Empty>
          )}
        </div>
      </section>
      {!stick.isAtEnd && (
        <div className="relative">
          <Button
            size="small"
            icon={<ArrowDown />}
            onClick={stick.toEnd}
            className="absolute bottom-2 left-1/2 -translate-x-1/2"
          >
            To the newest
          </Button>
        </div>
      )}
      <Composer
        ref={field}
        text={text}
        onText={(next) => setText(next === '' ? undefined : next)}
        files={<Attached attached={attached} />}
        isKeeping={attached.isKeeping}
        onFiles={attached.add}
        onSend={() =>
          anew ? sending.sendAnew(text, attached.ids, anew) : sending.send(text, attached.ids)
        }
        onSteer={() => sending.send(text, attached.ids, 'steer')}
        onStopAndSend={() => sending.send(text, attached.ids, 'interrupt')}
        onStop={sending.stop}
        // An answer that is under way can be stopped all the same.
        state={isClosed && sending.state === 'ready' ? 'closed' : sending.state}
        isClosed={isClosed}
        isAnew={anew !== undefined}
        error={sending.error ?? attached.error}
        hint={
          isPaused ? (
            'The agent is paused and takes no new work. Resume it to write to it.'
          ) : missing.length > 0 ? (
            'A message needs the scope agent, which your API key lacks.'
          ) : anew ? (
            <AnewHint
              onLeave={() => {
                setAnew(undefined);
                setText(undefined);
                attached.set([]);
              }}
            />
          ) : running !== undefined && text.trim() !== '' ? (
            whileItWorks
          ) : (
            hintOf(overrides, user)
          )
        }
      />
    </Section>
  );
}

const whileItWorks =
  'Send waits for the end of the answer. Send to this run reaches the agent after the tools under way.';

/** What becomes of a message that is written anew. */
function AnewHint({ onLeave }: { onLeave: () => void }) {
  return (
    <>
      It is sent in place of the earlier message, in a conversation of its own; this one stays as it
      is.{' '}
      <button type="button" className={textLink} onClick={onLeave}>
        Leave it
      </button>
    </>
  );
}

function hintOf(overrides: Overrides | null, user: string): string {
  const as = user === '' ? '' : ` You write for the user ${user}.`;
  const with_ = overrides === null ? '' : ' Unsaved settings are used.';
  return `Enter sends, Shift Enter starts a line.${as}${with_}`;
}
