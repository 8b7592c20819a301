/**
 * A receiver of webhooks as a test wants it: a real HTTPS server on the loopback device, whose
 * certificate for 127.0.0.1 and `*.receiver.test` an authority of the tests has signed. It records
 * what arrives, counts connections, those that never sent a byte too, and answers as told.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { authority, receiveHttps } from '../fixtures/receiver/receiver.ts';
import { waitFor } from './wait-for.ts';

/** The authority in PEM: for `webhookEgress.ca`. */
export const receiverAuthority = authority;
/** The same as a file: for NODE_EXTRA_CA_CERTS of a process. */
export const receiverAuthorityFile = fileURLToPath(
  new URL('../fixtures/receiver/authority.pem', import.meta.url),
);

/** What the receiver does with a request once it has read it. */
export type Script =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Uint8Array;
      /** Answers when this has come true; the test decides when. */
      readonly after?: Promise<unknown>;
    }
  /** Never answers. */
  | { readonly does: 'hang' }
  /** Resets the connection without an answer. */
  | { readonly does: 'reset' }
  /** Answers the status, then a byte of the body now and then, without end. */
  | { readonly does: 'drip'; readonly status: number; readonly everyMs: number }
  /** Answers the status, then a body without end, as fast as it is taken. */
  | { readonly does: 'flood'; readonly status: number }
  /** Answers the status and half of the body that it announced, then breaks the connection. */
  | { readonly does: 'break'; readonly status: number }
  /** Writes these bytes instead of an answer. */
  | { readonly does: 'write'; readonly bytes: string };

/** A request as it arrived. */
export interface Received {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values in turns, as they stood on the wire. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The body's JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  readonly json: any;
  /** Milliseconds on the monotonic clock of this process. */
  readonly at: number;
}

export interface TlsReceiver {
  readonly port: number;
  /** `https://127.0.0.1:port`, without a slash at the end. */
  readonly origin: string;
  /** The requests so far that were read to their end. */
  readonly requests: readonly Received[];
  /** TCP connections so far. */
  connections(): number;
  /** The most requests that were unanswered at one time. */
  mostAtATime(): number;
  /** Says how every request from now on is answered. */
  answers(script: Script | ((request: Received) => Script)): void;
  /** The first `n` requests, once they are there. */
  received(n: number, deadlineMs?: number): Promise<readonly Received[]>;
  /** The first request that `isIt`, once it is there. */
  receivedWhere(isIt: (request: Received) => boolean): Promise<Received>;
  close(): Promise<void>;
}

/** Starts a receiver on a free port; it answers 200 until told otherwise. */
export async function startTlsReceiver(): Promise<TlsReceiver> {
  const requests: Received[] = [];
  let scripted: Script | ((request: Received) => Script) = { status: 200 };
  let unanswered = 0;
  let most = 0;
  const server = await receiveHttps(async (message, response) => {
    unanswered += 1;
    most = Math.max(most, unanswered);
    response.once('close', () => {
      unanswered -= 1;
    });
    const body = await bodyOf(message);
    if (body === null) return;
    const request = recorded(message, body);
    requests.push(request);
    await act(typeof scripted === 'function' ? scripted(request) : scripted, response);
  });
  const seen = () => requests.map(({ method, path }) => `${method} ${path}`).join(', ');
  return {
    ...server,
    requests,
    mostAtATime: () => most,
    answers(script) {
      scripted = script;
    },
    received: (n, deadlineMs = 10_000) =>
      waitFor(() => (requests.length >= n ? requests.slice(0, n) : null), {
        describe: () => `${n} requests at the receiver; there were: ${seen()}`,
        deadlineMs,
      }),
    receivedWhere: (isIt) =>
      waitFor(() => requests.find(isIt), {
        describe: () => `a certain request at the receiver; there were: ${seen()}`,
      }),
  };
}

/** The whole body, or null when the sender broke off. */
async function bodyOf(message: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of message) chunks.push(chunk as Buffer);
  } catch {
    return null;
  }
  return Buffer.concat(chunks);
}

function recorded(message: IncomingMessage, body: Buffer): Received {
  return {
    method: message.method ?? '',
    path: message.url ?? '',
    headers: message.headers as Record<string, string>,
    rawHeaders: message.rawHeaders,
    body,
    get json() {
      return JSON.parse(body.toString());
    },
    at: performance.now(),
  };
}

async function act(script: Script, response: ServerResponse): Promise<void> {
  if (!('does' in script)) {
    await script.after;
    response.writeHead(script.status, script.headers).end(script.body);
    return;
  }
  const socket = response.socket as Socket;
  switch (script.does) {
    case 'hang':
      return;
    case 'reset':
      bareSocket(socket).resetAndDestroy();
      return;
    case 'drip': {
      response.writeHead(script.status);
      const drip = setInterval(() => response.write('.'), script.everyMs);
      response.on('close', () => clearInterval(drip));
      return;
    }
    case 'flood': {
      response.writeHead(script.status);
      const pour = () => {
        while (response.write('x'.repeat(16_384)));
      };
      response.on('drain', pour);
      pour();
      return;
    }
    case 'break':
      response.writeHead(script.status, { 'content-length': '1000' });
      response.write('x'.repeat(500), () => socket.destroy());
      return;
    case 'write':
      socket.end(script.bytes);
      return;
  }
}

/** Beneath TLS, because only a TCP socket can be reset. */
function bareSocket(socket: Socket): Socket {
  return (socket as Socket & { _parent?: Socket })._parent ?? socket;
}
