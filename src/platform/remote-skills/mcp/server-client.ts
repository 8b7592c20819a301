/** The SDK's client, shared by the HTTP and the command transport. */

import {
  Client,
  type ElicitRequestFormParams,
  type ElicitRequestURLParams,
  type ElicitResult,
  type LoggingMessageNotification,
  type Transport,
} from '@modelcontextprotocol/client';
import { refreshSource } from '../refresh.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { RemoteSkills } from '../state.ts';
import type { ToolCall } from './call-tool.ts';
import { putBack, setAside } from './set-aside.ts';

/** Least time between the end of a refresh and the next one that the service asks for. */
const againMs = 30_000;

/** Messages of a server on a connection during calls, without its answers. */
const messagesMax = 10_000;
/** Requests among them, each of which the platform has to answer. */
const requestsMax = 500;

type ElicitParams = ElicitRequestFormParams | ElicitRequestURLParams;

/** A connection to a server: over HTTP for one call, or to a command that calls share. */
export interface Connection {
  readonly client: ServerClient;
  /**
   * Rejects when the server violates the protocol or sends too much. Requests of this connection may then never end.
   */
  readonly broken: Promise<never>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Calls of a connection that have ended without their answer: a message of the server may be about one of them. */
export class UnansweredCalls {
  #any = false;
  #late = 0;

  get any(): boolean {
    return this.#any;
  }

  add(): void {
    this.#any = true;
    this.#late += 1;
  }

  /** Whether an answer to an unknown request may belong to one of them; each has one answer. */
  takeLateAnswer(): boolean {
    return this.#late > 0 && this.#late-- > 0;
  }
}

/** Disables the SDK's validation: outputs are checked against the pinned schema, not the server's present one. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

export interface ClientOptions {
  readonly source: RemoteSource;
  /** Of the platform. */
  readonly version: string;
  /** Has a refresh of the source when the server reports that its tools have changed. */
  readonly remote: RemoteSkills;
  /** Gets the id of the source once its server has asked a question during a call. */
  readonly askingSources?: Set<string>;
  readonly unanswered?: UnansweredCalls;
}

export class ServerClient {
  /** Not connected yet. */
  readonly sdk: Client;
  /** Rejects when the server violates the protocol or sends too much. */
  readonly broken: Promise<never>;
  readonly #server: string;
  readonly #break: (fault: Error) => void;
  readonly #unanswered: UnansweredCalls;
  readonly #calls = new Set<ToolCall>();
  readonly #count: MessageCount;

  constructor({
    source,
    version,
    remote,
    askingSources,
    unanswered = new UnansweredCalls(),
  }: ClientOptions) {
    this.#server = source.name;
    this.#unanswered = unanswered;
    this.sdk = new Client(
      { name: 'skillwright', title: 'Skillwright', version },
      {
        capabilities: { elicitation: { form: {}, url: {} } },
        jsonSchemaValidator: noValidator,
        versionNegotiation: { mode: 'auto' },
        inputRequired: { autoFulfill: false },
      },
    );
    const broken = Promise.withResolvers<never>();
    // Each request is raced with this promise, and none may read its rejection.
    broken.promise.catch(() => {});
    this.broken = broken.promise;
    this.#break = broken.reject;
    this.#count = new MessageCount((what) => this.#refuse(what));
    this.sdk.onerror = (error) => {
      this.#count.add(false);
      if (!/unknown message id/i.test(error.message) || unanswered.takeLateAnswer()) return;
      this.#refuse('answered a request that was not made');
    };
    this.sdk.setRequestHandler('elicitation/create', ({ params }) => {
      askingSources?.add(source.id);
      return this.#askCaller(putBack(params as ElicitParams));
    });
    this.sdk.setNotificationHandler('notifications/message', ({ params }) => {
      this.#onlyCall()?.run.log(logLine(params), params.level);
    });
    this.sdk.setNotificationHandler('notifications/tools/list_changed', () =>
      scheduleRefresh(remote, source.id),
    );
  }

  /** Begins a call, which receives the server's notifications and questions until the returned function is called. */
  begin(call: ToolCall): () => void {
    this.#count.begin();
    this.#calls.add(call);
    return () => void this.#calls.delete(call);
  }

  /** Counts the messages of the transport and sets aside their long parts; call it before connecting. */
  watch(transport: Transport): void {
    transport.onmessage = (message) => {
      if ('method' in message && !this.#count.add('id' in message))
        throw new Error('too many messages');
      const fault = setAside(message);
      if (fault === null) return;
      this.#refuse(fault);
      throw new Error(fault);
    };
  }

  #refuse(what: string): void {
    this.#break(new RemoteFault(`The server ${this.#server} ${what}`));
  }

  /**
   * The call that a question of the server belongs to. The protocol does not identify it, so there must be exactly one
   * call, and no unanswered call that the server may still be working on.
   */
  #onlyCall(): ToolCall | undefined {
    const [only, ...others] = this.#calls;
    return others.length === 0 && !this.#unanswered.any ? only : undefined;
  }

  async #askCaller(params: ElicitParams): Promise<ElicitResult> {
    const only = this.#onlyCall();
    if (only !== undefined) return only.ask(params);
    const calls = this.#calls;
    for (const { run } of calls) run.log(calls.size > 1 ? askedAmongSeveral : askedAfterEnd);
    return { action: 'cancel' };
  }
}

/** The messages of a server during calls; `exceeded` is called with the bound that was passed. */
class MessageCount {
  readonly #exceeded: (what: string) => void;
  #messages = 0;
  #requests = 0;

  constructor(exceeded: (what: string) => void) {
    this.#exceeded = exceeded;
  }

  begin(): void {
    this.#messages = 0;
    this.#requests = 0;
  }

  /** Whether the message is to be handled. */
  add(isRequest: boolean): boolean {
    this.#messages += 1;
    if (isRequest) this.#requests += 1;
    const hasMany = this.#messages > messagesMax;
    const hasManyRequests = this.#requests > requestsMax;
    if (hasMany) this.#exceeded(`sent more than ${messagesMax} messages during a call`);
    if (hasManyRequests) this.#exceeded(`sent more than ${requestsMax} requests during a call`);
    return !hasMany && !hasManyRequests;
  }
}

const askedAmongSeveral =
  'The server asked a question while several calls were under way, so no person was asked. From now on a process has one call at a time.';
const askedAfterEnd =
  'The server asked a question that may be of a call which has ended, so no person was asked.';

function logLine({ logger, data }: LoggingMessageNotification['params']): string {
  const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '');
  return logger === undefined ? text : `${logger}: ${text}`;
}

/**
 * Schedules a refresh of a source whose service has reported that its tools have changed. Refreshes are at least
 * `againMs` apart, because a service may report it all the time.
 */
function scheduleRefresh(remote: RemoteSkills, sourceId: string): void {
  const { refreshes, clock } = remote;
  // A refresh under way may itself cause the notification.
  if (refreshes.underWay.has(sourceId) || refreshes.scheduled.has(sourceId)) return;
  const before = refreshes.endedAt.get(sourceId) ?? Number.NEGATIVE_INFINITY;
  const waitMs = Math.max(0, before + againMs - clock.monotonic());
  const timer = setTimeout(() => {
    refreshes.scheduled.delete(sourceId);
    refreshSource(remote, sourceId).catch((err: unknown) => {
      remote.log.warn(
        { err, source: sourceId },
        'a remote source that has changed was not refreshed',
      );
    });
  }, waitMs).unref();
  refreshes.scheduled.set(sourceId, timer);
}
