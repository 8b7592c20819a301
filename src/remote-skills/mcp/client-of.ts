/** The SDK's client, as both ways to a server use it. */
import { Client } from '@modelcontextprotocol/client';
import { RemoteFault } from '../remote-kind.ts';

export interface Connection {
  readonly client: Client;
  /** Rejects where the server breaks the protocol, so that no request of this connection can be trusted to end. */
  readonly broken: Promise<never>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Outputs are checked against the schema that is pinned, not against the one that the server tells now. */
const noValidator = {
  getValidator: () => () => ({ valid: true, data: undefined, errorMessage: undefined }) as never,
};

/** `isLate` says of an answer to an unknown request whether it may be one that was given up. */
export function newClient(
  server: string,
  version: string,
  isLate: () => boolean = () => false,
): Pick<Connection, 'client' | 'broken'> {
  const client = new Client(
    { name: 'skillwright', title: 'Skillwright', version },
    {
      capabilities: {},
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
  return { client, broken: broken.promise };
}
