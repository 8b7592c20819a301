/** The SDK's client, as both ways to a server use it. */
import {
  Client,
  type ElicitRequestFormParams,
  type ElicitResult,
  type LoggingMessageNotification,
} from '@modelcontextprotocol/client';
import { RemoteFault } from '../remote-kind.ts';

/** A call under way, which gets what the server says and asks meanwhile. */
export interface CallOnConnection {
  log(message: string, level?: string): void;
  ask(params: ElicitRequestFormParams): Promise<ElicitResult>;
}

export interface Connection {
  readonly client: Client;
  /** The calls under way on it. */
  readonly calls: Set<CallOnConnection>;
  /** Rejects where the server breaks the protocol, so that no request of this connection can be trusted to end. */
  readonly broken: Promise<never>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Outputs are checked against the schema that is pinned, not against the one that the server tells now. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

export interface ClientHooks {
  /** Whether an answer to an unknown request may be that to one that was given up. */
  isLate?(): boolean;
  /** The server has asked a question during a call. */
  onAsked?(): void;
  /** The server says that its tools have changed. */
  onToolsChanged(): void;
}

export function newClient(
  server: string,
  version: string,
  { isLate = () => false, onAsked, onToolsChanged }: ClientHooks,
): Omit<Connection, 'close'> {
  const client = new Client(
    { name: 'skillwright', title: 'Skillwright', version },
    {
      capabilities: { elicitation: { form: {} } },
      jsonSchemaValidator: noValidator,
      versionNegotiation: { mode: 'auto' },
      inputRequired: { autoFulfill: false },
    },
  );
  const broken = Promise.withResolvers<never>();
  // It is raced with each request; one that fails by itself leaves this one unread.
  broken.promise.catch(() => {});
  client.onerror = (error) => {
    if (!/unknown message id/i.test(error.message) || isLate()) return;
    broken.reject(new RemoteFault(`The server ${server} answered a request that was not made`));
  };
  const calls: Connection['calls'] = new Set();
  client.setRequestHandler('elicitation/create', ({ params }) => {
    onAsked?.();
    return askCaller(calls, params as ElicitRequestFormParams);
  });
  client.setNotificationHandler('notifications/message', ({ params }) => {
    const [only] = calls;
    // Of several calls it is not known whose message it is.
    if (calls.size === 1) only?.log(logLine(params), params.level);
  });
  client.setNotificationHandler('notifications/tools/list_changed', () => onToolsChanged());
  return { client, calls, broken: broken.promise };
}

/** The protocol does not say in which of several calls on one connection a server asks. */
async function askCaller(
  calls: Connection['calls'],
  params: ElicitRequestFormParams,
): Promise<ElicitResult> {
  const [only, ...others] = calls;
  if (only !== undefined && others.length === 0) return only.ask(params);
  for (const call of calls) call.log(askedAmongSeveral);
  return { action: 'cancel' };
}

const askedAmongSeveral =
  'The server asked a question while several calls were under way, so no person was asked. From now on a process has one call at a time.';

function logLine({ logger, data }: LoggingMessageNotification['params']): string {
  const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '');
  return logger === undefined ? text : `${logger}: ${text}`;
}
