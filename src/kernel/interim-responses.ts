/**
 * Interim responses (1xx) of an HTTP/1.1 server, for undici. Any server may send them before the answer, and a client that
 * did not ask for one skips it (RFC 9110, 15.2). undici skips all but 100 Continue, for which it ends the connection.
 * So this changes the status 100 into 103 before undici reads it, where a response may begin. A client writes each
 * request at once, body included, and sends the next one after the answer: undici's `pipelining` must be at most 1.
 */
import type { Socket } from 'node:net';

/** Interim responses of one request. A server sends one or two. */
const interimMax = 20;
const [lineFeed, carriageReturn, one] = [10, 13, 49];
/** Of a status line: `HTTP/1.1 ` and the three digits of the status. */
const statusAt = 9;
const statusEnd = 12;

/** Makes the interim responses of the socket's server harmless; the same socket. */
export function skipInterimResponses(socket: Socket): Socket {
  const responses = new Responses();
  const { push, write } = socket;
  socket.write = (...given: unknown[]) => {
    responses.expect();
    return Reflect.apply(write, socket, given) as boolean;
  };
  socket.push = (chunk: unknown, encoding) => {
    if (!(chunk instanceof Uint8Array) || responses.pass(chunk)) {
      return push.call(socket, chunk, encoding);
    }
    socket.destroy(new Error(`The server sent more than ${interimMax} interim responses`));
    return false;
  };
  return socket;
}

/** Follows what a server sends, up to the beginning of its answer. */
class Responses {
  private place: 'status line' | 'interim head' | 'answer' = 'answer';
  private status = '';
  /** Bytes of the status line so far. */
  private position = 0;
  /** Line feeds in a row. */
  private lineFeeds = 0;
  private interim = 0;

  /** A request is sent, so a response may begin. */
  expect(): void {
    this.interim = 0;
    this.begin();
  }

  /** Takes the next bytes and changes 100 into 103; false for too many interim responses. */
  pass(bytes: Uint8Array): boolean {
    for (let i = 0; i < bytes.length && this.place !== 'answer'; i++) {
      if (this.place === 'status line') this.readStatus(bytes, i);
      else this.readHead(bytes[i] as number);
    }
    return this.interim <= interimMax;
  }

  private begin(): void {
    this.place = 'status line';
    this.status = '';
    this.position = 0;
    this.lineFeeds = 0;
  }

  private readStatus(bytes: Uint8Array, i: number): void {
    const byte = bytes[i] as number;
    // undici allows empty lines before it.
    if (this.position === 0 && (byte === carriageReturn || byte === lineFeed)) return;
    this.position += 1;
    if (this.position <= statusAt) return;
    this.status += String.fromCharCode(byte);
    if (this.position < statusEnd) return;
    if (this.status === '100') bytes[i] = byte + 3;
    const isInterim = this.status.charCodeAt(0) === one && this.status !== '101';
    this.place = isInterim ? 'interim head' : 'answer';
    if (isInterim) this.interim += 1;
  }

  private readHead(byte: number): void {
    if (byte === lineFeed) this.lineFeeds += 1;
    else if (byte !== carriageReturn) this.lineFeeds = 0;
    if (this.lineFeeds === 2) this.begin();
  }
}
