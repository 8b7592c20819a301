/**
 * Send: one attempt over the network. It ends by the deadline and follows no redirect. A failure is a
 * sentence for the owner of the webhook, which reveals nothing of the internal network. Only the first
 * attempt of a delivery may reuse a connection: for every later one, the receiver's address is resolved
 * and checked again.
 */
import type { AllowList } from '../../adapters/egress/allow-list.ts';
import { EgressError } from '../../adapters/egress/egress-error.ts';
import type { Egress } from '../../adapters/egress/guarded-fetch.ts';
import type { Resolve } from '../../adapters/egress/system-resolver.ts';
import { Lazy } from '../../kernel/lazy.ts';
import { hostSlotsMax } from './lanes.ts';
import type { AttemptOutcome } from './states.ts';

/** Bytes of an answer that are read; only its status decides the outcome. */
const answerBytesMax = 65_536;
/** Bytes of an answer that are kept. */
const excerptBytesMax = 1024;
/** Statuses with a Location to follow; 304, for example, has none. */
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Below the 5 s after which most servers close an idle connection. */
const idleMs = 4_000;

export interface SendRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether it needs a new connection. */
  readonly isFresh: boolean;
  /** Aborts it. */
  readonly signal: AbortSignal;
}

/** The answer. Its status is null when there was none. With a status and an error, it was cut off. */
export interface Answer {
  readonly status: number | null;
  /** A sentence; null when the answer arrived as far as it is read. */
  readonly error: string | null;
  /** The beginning of the answer's body, as text. */
  readonly response: string | null;
}

/** How an attempt ended, as its settlement records it. */
export interface AttemptResult extends Answer {
  readonly outcome: AttemptOutcome;
}

export interface SenderOptions {
  readonly allowed: AllowList;
  readonly timeoutMs: number;
  readonly ca?: string;
  readonly resolve?: Resolve;
}

export class Sender {
  readonly #timeoutMs: number;
  readonly #connections: Lazy<{ readonly kept: Egress; readonly fresh: Egress }>;

  constructor({ timeoutMs, ...options }: SenderOptions) {
    this.#timeoutMs = timeoutMs;
    const common = {
      ...options,
      schemes: ['https:'],
      fragment: 'refused',
      // Connecting and answering share one time limit.
      connectTimeoutMs: timeoutMs,
    } as const;
    // Loaded at the first attempt: it takes a sixth of the memory of a process without webhooks.
    this.#connections = new Lazy(async () => {
      const { Egress } = await import('../../adapters/egress/guarded-fetch.ts');
      const kept = new Egress({ ...common, keepAlive: { idleMs, connectionsMax: hostSlotsMax } });
      return { kept, fresh: new Egress(common) };
    });
  }

  /** Every failure of a request is a result. */
  async send({ url, headers, body, isFresh, signal }: SendRequest): Promise<AttemptResult> {
    const { kept, fresh } = await this.#connections.get();
    try {
      const answer = await (isFresh ? fresh : kept).request(url, {
        method: 'POST',
        headers,
        body,
        signal,
        timeoutMs: this.#timeoutMs,
        maxBytes: answerBytesMax,
        overflow: 'truncate',
        redirects: 0,
        decompress: false,
      });
      const response = excerptOf(answer.body);
      return resultOf({ status: answer.status, error: null, response }, signal.aborted);
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      const { status, message, received } = error;
      const response = status === null ? null : excerptOf(received);
      return resultOf({ status, error: message, response }, signal.aborted);
    }
  }

  /** Aborts the requests under way and closes the connections. */
  async close(): Promise<void> {
    const connections = await this.#connections.getUsed();
    await Promise.all([connections?.kept.close(), connections?.fresh.close()]);
  }
}

/** What an answer means for its attempt; `isStopping`: the platform may have aborted the request. */
export function resultOf(answer: Answer, isStopping: boolean): AttemptResult {
  const { status, response } = answer;
  const outcome = outcomeOf(status, isStopping);
  const error = outcome === 'accepted' ? null : failureOf(answer, outcome);
  return { outcome, status, error, response };
}

function outcomeOf(status: number | null, isStopping: boolean): AttemptOutcome {
  if (status === null) return isStopping ? 'lost' : 'refused';
  if (status >= 200 && status < 300) return 'accepted';
  return status === 410 ? 'gone' : 'refused';
}

/** Why an attempt failed, as a sentence. */
function failureOf({ status, error }: Answer, outcome: AttemptOutcome): string | null {
  if (outcome === 'lost') return 'The platform stopped before the receiver had answered';
  if (status === null) return error;
  if (status === 410) return 'The receiver answered 410: it wants no more of this delivery';
  if (redirects.has(status)) {
    return `The receiver answered ${status}: redirects are not followed`;
  }
  return `The receiver answered ${status}`;
}

/** Text that both databases can store, whatever bytes the receiver sent. */
function excerptOf(body: Buffer): string {
  return body.subarray(0, excerptBytesMax).toString('utf8').replaceAll('\0', '\uFFFD');
}
