/** The SDK's client, as both ways to a server use it. */
import {
  Client,
  type ElicitRequestFormParams,
  type ElicitRequestURLParams,
  type ElicitResult,
  type LoggingMessageNotification,
  type Transport,
} from '@modelcontextprotocol/client';
import { RemoteFault } from '../remote-kind.ts';

/** Messages that a server sends on a connection after a call has begun, beside its answers. */
const messagesMax = 10_000;
/** Requests among them: each is answered by a message of ours. */
const requestsMax = 500;

type ElicitParams = ElicitRequestFormParams | ElicitRequestURLParams;

/** A call under way, which gets what the server says and asks meanwhile. */
export interface CallOnConnection {
  log(message: string, level?: string): void;
  ask(params: ElicitParams): Promise<ElicitResult>;
}

export interface Connection {
  readonly client: Client;
  /** Begins a call, which gets what the server says and asks until the returned function is called. */
  begin(call: CallOnConnection): () => void;
  /**
   * Rejects where the server breaks the protocol or sends too much, so that no request of this connection can be
   * trusted to end.
   */
  readonly broken: Promise<never>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Outputs are checked against the schema that is pinned, not against the one that the server tells now. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

export interface ClientHooks {
  /** Whether an answer to an unknown request may belong to a request that was given up. */
  isLate?(): boolean;
  /** Whether a call has ended without its answer: what the server says may be about that call. */
  hasUnanswered?(): boolean;
  /** The server has asked a question during a call. */
  onAsked?(): void;
  /** The server says that its tools have changed. */
  onToolsChanged(): void;
}

/** A client that is not connected yet. */
export interface NewClient extends Omit<Connection, 'close'> {
  /** Counts what the transport brings; to be called before it is connected. */
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
  const count = newCount((what) => broken.reject(new RemoteFault(`The server ${server} ${what}`)));
  client.onerror = (error) => {
    count.add(false);
    if (!/unknown message id/i.test(error.message) || isLate()) return;
    broken.reject(new RemoteFault(`The server ${server} answered a request that was not made`));
  };
  client.setRequestHandler('elicitation/create', ({ params }) => {
    onAsked?.();
    return askCaller(calls, hooks, params as ElicitParams);
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
      };
    },
  };
}

/** Counts the messages and bytes of a server; `exceeded` is called with the bound that was passed. */
function newCount(exceeded: (what: string) => void) {
  let messages = 0;
  let requests = 0;
  return {
    begin(): void {
      messages = 0;
      requests = 0;
    },
    /** Whether the message is to be handled. */
    add(isRequest: boolean): boolean {
      messages += 1;
      if (isRequest) requests += 1;
      if (messages > messagesMax) exceeded(`sent more than ${messagesMax} messages during a call`);
      if (requests > requestsMax) exceeded(`sent more than ${requestsMax} requests during a call`);
      return messages <= messagesMax && requests <= requestsMax;
    },
  };
}

/**
 * The call that the server speaks of. The protocol does not say which it is, so there has to be one alone, and none that
 * the server may still be working on after it has ended.
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
