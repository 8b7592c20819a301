/**
 * Shares a browser's connections between its tabs. Over HTTP/1.1 a browser opens six connections per host for
 * all tabs, and an event stream occupies one. So the streams of all tabs announce themselves: the oldest ones
 * stay open, and the others open in turn for a short time, so that connections are left for requests.
 */

/** Streams that stay open. */
const heldMax = 3;
/** How long a stream's turn lasts; the pause after it leaves time for the turns of others. */
const visitMs = 1_000;
/** How often a tab announces its streams, and when a stream without announcements expires. */
const tellMs = 2_000;
const forgottenMs = 3 * tellMs;
/** How long a new stream waits for answers of other tabs. */
const askedMs = 100;

interface Member {
  readonly id: string;
  readonly since: number;
}
type Message =
  | { readonly kind: 'here'; readonly members: readonly Member[]; readonly isQuestion: boolean }
  | { readonly kind: 'gone'; readonly id: string };

/** How long a stream may be open (null: no limit), and how long it then stays closed. */
export interface Turn {
  readonly openMs: number | null;
  readonly closedMs: number;
}

/** A stream that takes part. */
export interface Participant {
  turn(): Promise<Turn>;
  leave(): void;
}

const endless: Turn = { openMs: null, closedMs: 0 };
const own = new Map<string, Member>();
const others = new Map<string, Member & { readonly seenAt: number }>();
let channel: BroadcastChannel | undefined;
let telling: ReturnType<typeof setInterval> | undefined;

/** HTTP/2 and later carry many streams in one connection. */
function isMultiplexed(): boolean {
  const [page] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return page !== undefined && /^h[23]/.test(page.nextHopProtocol);
}

/** Registers a stream for turns; call `leave` when it is closed for good. */
export function takePart(): Participant {
  if (typeof BroadcastChannel === 'undefined' || isMultiplexed()) {
    return { turn: async () => endless, leave() {} };
  }
  const member: Member = { id: `${Math.random()}`, since: Date.now() };
  own.set(member.id, member);
  open();
  tell(true);
  const answered = new Promise((resolve) => setTimeout(resolve, askedMs));
  return {
    async turn() {
      await answered;
      return turnOf(member);
    },
    leave() {
      own.delete(member.id);
      send({ kind: 'gone', id: member.id });
      if (own.size === 0) close();
    },
  };
}

function turnOf(member: Member): Turn {
  const oldest = performance.now() - forgottenMs;
  for (const [id, { seenAt }] of others) if (seenAt < oldest) others.delete(id);
  const all = [...own.values(), ...others.values()].sort(
    (a, b) => a.since - b.since || (a.id < b.id ? -1 : 1),
  );
  const place = all.findIndex(({ id }) => id === member.id);
  if (place < heldMax) return endless;
  return { openMs: visitMs, closedMs: visitMs * (all.length - heldMax) };
}

function open(): void {
  if (channel !== undefined) return;
  channel = new BroadcastChannel('skillwright-streams');
  channel.onmessage = ({ data }: MessageEvent<Message>) => hear(data);
  telling = setInterval(() => tell(false), tellMs);
  addEventListener('pagehide', close);
}

/** Also when the page is left: its streams end with it. */
function close(): void {
  for (const id of own.keys()) send({ kind: 'gone', id });
  own.clear();
  clearInterval(telling);
  channel?.close();
  channel = undefined;
  others.clear();
  removeEventListener('pagehide', close);
}

function hear(message: Message): void {
  if (message.kind === 'gone') {
    others.delete(message.id);
    return;
  }
  for (const { id, since } of message.members) {
    others.set(id, { id, since, seenAt: performance.now() });
  }
  if (message.isQuestion) tell(false);
}

const tell = (isQuestion: boolean) =>
  send({ kind: 'here', members: [...own.values()], isQuestion });

const send = (message: Message) => channel?.postMessage(message);
