/** The SDK's client, shared by the HTTP and the command transport. */
import {
  Client,
  type ElicitRequestFormParams,
  type ElicitRequestURLParams,
  type ElicitResult,
  type LoggingMessageNotification,
  type Transport,
} from '@modelcontextprotocol/client';
import { RemoteFault } from '../remote-kind.ts';
import { putBack, setAside } from './set-aside.ts';

/** Messages of a server on a connection during calls, without its answers. */
const messagesMax = 10_000;
/** Requests among them, each of which the platform has to answer. */
const requestsMax = 500;

type ElicitParams = ElicitRequestFormParams | ElicitRequestURLParams;

/** A call under way, which receives the server's notifications and questions. */
export interface CallOnConnection {
  log(message: string, level?: string): void;
  ask(params: ElicitParams): Promise<ElicitResult>;
}

export interface Connection {
  readonly client: Client;
  /** Begins a call, which receives the server's notifications and questions until the returned function is called. */
  begin(call: CallOnConnection): () => void;
  /**
   * Rejects when the server violates the protocol or sends too much. Requests of this connection may then never end.
   */
  readonly broken: Promise<never>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Disables the SDK's validation: outputs are checked against the pinned schema, not the server's present one. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

export interface ClientHooks {
  /** Whether an answer to an unknown request may belong to a request that was given up. */
  isLate?(): boolean;
  /** Whether a call has ended without its answer: a message of the server may be about that call. */
  hasUnanswered?(): boolean;
  /** The server has asked a question during a call. */
  onAsked?(): void;
  /** The server reports that its tools have changed. */
  onToolsChanged(): void;
}

/** A client that is not connected yet. */
export interface NewClient extends Omit<Connection, 'close'> {
  /** Counts the messages of the transport and sets aside their long parts; call it before connecting. */
  watch(transport: Transport): void;
}

export function newClient(server: string, version: string, hooks: ClientHooks): NewClient {
  const { isLate = () => false, onAsked, onToolsChanged } = hooks;
  const client = new Client(
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
  const calls = new Set<CallOnConnection>();
  const count = new MessageCount((what) =>
    broken.reject(new RemoteFault(`The server ${server} ${what}`)),
  );
  client.onerror = (error) => {
    count.add(false);
    if (!/unknown message id/i.test(error.message) || isLate()) return;
    broken.reject(new RemoteFault(`The server ${server} answered a request that was not made`));
  };
  client.setRequestHandler('elicitation/create', ({ params }) => {
    onAsked?.();
    return askCaller(calls, hooks, putBack(params as ElicitParams));
  });
  client.setNotificationHandler('notifications/message', ({ params }) => {
    onlyCall(calls, hooks)?.log(logLine(params), params.level);
  });
  client.setNotificationHandler('notifications/tools/list_changed', () => onToolsChanged());
  return {
    client,
    broken: broken.promise,
    begin(call) {
      count.begin();
      calls.add(call);
      return () => void calls.delete(call);
    },
    watch(transport) {
      transport.onmessage = (message) => {
        if ('method' in message && !count.add('id' in message))
          throw new Error('too many messages');
        const fault = setAside(message);
        if (fault === null) return;
        broken.reject(new RemoteFault(`The server ${server} ${fault}`));
        throw new Error(fault);
      };
    },
  };
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

/**
 * The call that a question of the server belongs to. The protocol does not identify it, so there must be exactly one
 * call, and no abandoned call that the server may still be working on.
 */
function onlyCall(
  calls: ReadonlySet<CallOnConnection>,
  { hasUnanswered }: Pick<ClientHooks, 'hasUnanswered'>,
): CallOnConnection | undefined {
  const [only, ...others] = calls;
  return others.length === 0 && !hasUnanswered?.() ? only : undefined;
}

async function askCaller(
  calls: ReadonlySet<CallOnConnection>,
  hooks: ClientHooks,
  params: ElicitParams,
): Promise<ElicitResult> {
  const only = onlyCall(calls, hooks);
  if (only !== undefined) return only.ask(params);
  for (const call of calls) call.log(calls.size > 1 ? askedAmongSeveral : askedAfterEnd);
  return { action: 'cancel' };
}

const askedAmongSeveral =
  'The server asked a question while several calls were under way, so no person was asked. From now on a process has one call at a time.';
const askedAfterEnd =
  'The server asked a question that may be of a call which has ended, so no person was asked.';

function logLine({ logger, data }: LoggingMessageNotification['params']): string {
  const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '');
  return logger === undefined ? text : `${logger}: ${text}`;
}
