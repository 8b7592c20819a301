/**
 * HTTP as bytes: for requests that no client library sends, and answers as they stand on the wire.
 */
import { connect, type Socket } from 'node:net';
import { waitFor } from './wait-for.ts';

/** One answer of a connection. */
export interface RawAnswer {
  readonly status: number;
  /** Lower-case names; the values of a repeated one are joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  readonly body: any;
}

export interface RawConnection {
  send(bytes: string | Uint8Array): void;
  /** The first `n` answers, once they are there. */
  answers(n: number): Promise<RawAnswer[]>;
  /** Everything received until the server closed. */
  closed(): Promise<RawAnswer[]>;
  isClosed(): boolean;
  destroy(): void;
}

/** A connection to the server at `url`. */
export function openRaw(url: string): RawConnection {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port) });
  let received = Buffer.alloc(0);
  let closed = false;
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
  });
  // A server that cuts a client off may do so with a reset; the answers before it count.
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  const described = () => received.toString('latin1').slice(0, 2_000);
  return {
    send: (bytes) => void socket.write(bytes),
    answers: (n) =>
      waitFor(
        () => {
          const all = parseAnswers(received);
          return all.length >= n ? all.slice(0, n) : null;
        },
        {
          describe: () => `${n} answers; there is: ${described()}`,
          deadlineMs: 20_000,
          everyMs: 1,
        },
      ),
    async closed() {
      await waitFor(() => closed, {
        describe: () => `the server closes; there is: ${described()}`,
        deadlineMs: 20_000,
      });
      return parseAnswers(received);
    },
    isClosed: () => closed,
    destroy: () => void socket.destroy(),
  };
}

/** Sends bytes on a connection of their own; the one answer. */
export async function sendRaw(url: string, bytes: string | Uint8Array): Promise<RawAnswer> {
  const connection = openRaw(url);
  try {
    connection.send(bytes);
    const [answer] = await connection.answers(1);
    return answer as RawAnswer;
  } finally {
    connection.destroy();
  }
}

/** The complete answers in `bytes`, `100 Continue` left out. */
function parseAnswers(bytes: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = bytes;
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) return answers;
    const [statusLine = '', ...lines] = rest.subarray(0, headEnd).toString('latin1').split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const headers = headersOf(lines);
    const after = rest.subarray(headEnd + 4);
    if (status === 100) {
      rest = after;
      continue;
    }
    const length = hasNoBody(status) ? 0 : Number(headers['content-length'] ?? 0);
    const isChunked = headers['transfer-encoding'] === 'chunked';
    const chunked = isChunked ? readChunks(after) : null;
    if (isChunked ? chunked === null : after.length < length) return answers;
    const text = (chunked?.content ?? after.subarray(0, length)).toString('utf8');
    const isJson = headers['content-type']?.startsWith('application/json') ?? false;
    answers.push({ status, headers, text, body: isJson && text !== '' ? parsed(text) : undefined });
    rest = chunked?.rest ?? after.subarray(length);
  }
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}

/** A chunked body and what follows it, or null while its end is missing. */
function readChunks(bytes: Buffer): { content: Buffer; rest: Buffer } | null {
  const chunks: Buffer[] = [];
  let rest = bytes;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n');
    if (lineEnd < 0) return null;
    const size = Number.parseInt(rest.subarray(0, lineEnd).toString('latin1'), 16);
    if (rest.length < lineEnd + 2 + size + 2) return null;
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size));
    rest = rest.subarray(lineEnd + 2 + size + 2);
    if (size === 0) return { content: Buffer.concat(chunks), rest };
  }
}
