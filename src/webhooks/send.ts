/**
 * Send: one attempt over the network. Promises that it ends by the deadline, that no redirect is
 * followed, and that a failure is a sentence for whoever owns the webhook, which tells nothing of the
 * network inside. Only the very first attempt of a delivery may use a kept connection: whatever is
 * sent again has the receiver's address judged anew.
 */
import type { AllowList } from '../egress/allow-list.ts';
import { EgressError } from '../egress/egress-error.ts';
import type { Resolve } from '../egress/system-resolver.ts';
import { lazily } from '../kernel/lazy.ts';
import { hostPlacesMax } from './lanes.ts';

/** Bytes of an answer that are read at most; its status has decided by then. */
const answerBytesMax = 65_536;
/** Bytes of an answer that are kept. */
const excerptBytesMax = 1024;
/** Below the 5 s after which most servers close an idle connection. */
const idleMs = 4_000;

export interface SendRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether it must go over a connection of its own. */
  readonly isFresh: boolean;
  /** Breaks it off. */
  readonly signal: AbortSignal;
}

/** What came back. Without a status, nothing did; with an error as well, only part of it. */
export interface Answer {
  readonly status: number | null;
  /** A sentence; null when the whole answer, or as much as is read of one, arrived. */
  readonly error: string | null;
  /** How the answer's body begins, as text. */
  readonly response: string | null;
}

/** Never rejects. */
export type Send = (request: SendRequest) => Promise<Answer>;

export interface Sender {
  readonly send: Send;
  /** Breaks off what is under way and frees the connections. */
  close(): Promise<void>;
}

export function openSender(options: {
  allowed: AllowList;
  timeoutMs: number;
  /** For tests: further authorities, another resolver. */
  ca?: string | undefined;
  resolve?: Resolve | undefined;
}): Sender {
  const { allowed, timeoutMs, ca, resolve } = options;
  const common = {
    allowed,
    schemes: ['https:'],
    fragment: 'refused',
    // The receiver has the whole time for its answer, however it is spent.
    connectTimeoutMs: timeoutMs,
    ...(ca === undefined ? {} : { ca }),
    ...(resolve === undefined ? {} : { resolve }),
  } as const;
  let isOpen = false;
  // Loaded for the first attempt: it would cost a process without webhooks a sixth of its memory.
  const open = lazily(async () => {
    const { openEgress } = await import('../egress/guarded-fetch.ts');
    const kept = openEgress({ ...common, keepAlive: { idleMs, connectionsMax: hostPlacesMax } });
    return { kept, fresh: openEgress(common) };
  });
  return {
    async send({ url, headers, body, isFresh, signal }) {
      isOpen = true;
      const ways = await open();
      try {
        const answer = await (isFresh ? ways.fresh : ways.kept).request(url, {
          method: 'POST',
          headers,
          body,
          signal,
          timeoutMs,
          maxBytes: answerBytesMax,
          overflow: 'truncate',
          redirects: 0,
          decompress: false,
        });
        return { status: answer.status, error: null, response: excerptOf(answer.body) };
      } catch (error) {
        if (!(error instanceof EgressError)) throw error;
        const { status, message, received } = error;
        return { status, error: message, response: status === null ? null : excerptOf(received) };
      }
    },
    async close() {
      if (!isOpen) return;
      const { kept, fresh } = await open();
      await Promise.all([kept.close(), fresh.close()]);
    },
  };
}

/** Text that both databases can keep, whatever the receiver sent. */
function excerptOf(body: Buffer): string {
  return body.subarray(0, excerptBytesMax).toString('utf8').replaceAll('\0', '\uFFFD');
}
