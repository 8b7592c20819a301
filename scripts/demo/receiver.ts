/** The other end of the demo's webhooks: an HTTPS server that verifies what it gets. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const certificates = join(import.meta.dirname, '../../test/fixtures/receiver');

export interface Delivery {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly signature: string;
  readonly isValid: boolean;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Listens on this machine; senders have to trust `authorityFile`. */
export async function startReceiver() {
  const deliveries: Delivery[] = [];
  let secret = '';
  const server = createServer(
    {
      key: readFileSync(join(certificates, 'receiver.key.pem')),
      cert: readFileSync(join(certificates, 'receiver.pem')),
    },
    async (request, response) => {
      const body = await text(request);
      const signature = String(request.headers['x-service-signature']);
      const expected = createHmac('sha256', secret).update(body).digest('hex');
      const isValid =
        signature.length === expected.length &&
        timingSafeEqual(Buffer.from(signature), Buffer.from(expected));
      const { event, data } = JSON.parse(body) as Pick<Delivery, 'event' | 'data'>;
      deliveries.push({ event, data, signature, isValid });
      response.writeHead(isValid ? 204 : 401).end();
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    authorityFile: join(certificates, 'authority.pem'),
    /** In the order in which they arrived. */
    deliveries: deliveries as readonly Delivery[],
    /** What the webhook's creation answered. */
    useSecret(given: string) {
      secret = given;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
