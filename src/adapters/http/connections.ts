/**
 * Limits the connections of a server and their unread answers. A client that does not read is
 * disconnected; the unread answers of all clients have a limit in bytes; a connection handles a limited
 * number of pipelined requests at a time; and each address has a limited number of connections. A request
 * is never cut while its handler runs.
 *
 * A connection counts for its address while it has no request of a valid key under way, which the limits of keys and
 * organizations count. The connections of a trusted proxy count for no address; a request through it counts for the
 * address of its client, until its key is known. So clients behind one address do not lock each other out.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { type ClientAddresses, plainAddress } from './client-address.ts';
import { networkOf } from './network-of.ts';

export interface ConnectionLimits {
  /** Open connections of one address, or requests under way of one client behind a trusted proxy. */
  readonly perAddress: number;
  /** A client that reads no byte of its answer for this long is disconnected. */
  readonly stallMs: number;
  /** The time that a client has to send a file; it has less for any other request. */
  readonly uploadMs: number;
  /** The time that a client has to read an answer, or a part of a long one. */
  readonly answerMs: number;
  /** Bytes of unread answers, of all connections together. */
  readonly unreadBytes: number;
}

/** Pipelined requests of one connection that are handled at a time; the others wait. */
const atOnceMax = 10;
/** Pipelined requests that may wait on one connection; a client that sends more is disconnected. */
const waitingMax = 1_000;
const checkEveryMs = 500;
/** An answer that has waited less than this is never cut, also above the limit of bytes. */
const unreadGraceMs = 1_000;
const warnEveryMs = 60_000;
/** Of a long answer a client takes this at least in each of its times. */
const bytesPerMs = 16;
/** A whole request must arrive within this time, unless it is one of a file. */
const requestMs = 15_000;

class Connection {
  readonly server: Server;
  readonly socket: Socket;
  readonly all: Connections;
  /** Whether it is one of a trusted proxy. */
  readonly isProxied: boolean;
  /** That of the connection, or that of the client of a proxy's last request. */
  address: string;
  /** Whether it counts for its address. */
  isCounted = false;
  /** Requests of a valid key under way; not of a proxy's connection. */
  readonly ofKeys = new Set<ServerResponse>();
  /** Requests under way through a proxy that count for the address of their client. */
  readonly ofClients = new Map<ServerResponse, string>();
  /** Responses that are not completely sent, in the order of their requests. */
  readonly open: ServerResponse[] = [];
  readonly waiting: [IncomingMessage, ServerResponse][] = [];
  /** Since when the first of `open` has had bytes that its client has not read. */
  unreadSince: number | null = null;
  /** Since when bytes of the first of `open` have been under way to the client without a pause. */
  sendingSince: number | null = null;
  /** Bytes that the client had taken then. */
  takenBefore = 0;
  /** The last request that has a body, and until when it has to be here. */
  arriving: IncomingMessage | null = null;
  arrivesUntil = 0;

  constructor(all: Connections, socket: Socket, server: Server) {
    this.server = server;
    const peer = plainAddress(socket.remoteAddress);
    this.socket = socket;
    this.all = all;
    this.isProxied = all.clients.isProxy(peer);
    this.address = networkOf(peer);
  }
}

/** The connections of a server, whose requests reach `handler` within the limits. */
export class Connections {
  readonly handler: RequestListener;
  readonly limits: ConnectionLimits;
  readonly clients: ClientAddresses;
  /** What counts for each address. */
  readonly byAddress = new Map<string, number>();
  readonly #log: Logger;
  readonly #open = new Map<Socket, Connection>();
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(
    handler: RequestListener,
    limits: ConnectionLimits,
    clients: ClientAddresses,
    log: Logger,
  ) {
    this.handler = handler;
    this.limits = limits;
    this.clients = clients;
    this.#log = log;
  }

  /** Applies the limits to a server whose requests `listen` handles. */
  watch(server: Server): void {
    const { stallMs } = this.limits;
    server.on('connection', (socket) => this.#connect(socket, server));
    // Node restarts this time with every byte that is sent or received.
    server.setTimeout(stallMs, (socket) => {
      const connection = this.#open.get(socket);
      // Node never ends a connection that has sent no byte, so this does.
      if (connection === undefined || connection.open.length === 0) socket.destroy();
      else if (unreadBytesOf(connection) > 0) {
        this.#cut(connection, `its client took nothing for ${stallMs} ms (RESPONSE_STALL_MS)`);
      } else if (connection.arriving?.complete === false) {
        this.#cut(connection, `its client sent nothing for ${stallMs} ms (RESPONSE_STALL_MS)`);
      }
    });
    const checking = setInterval(() => this.#cutSlow(), checkEveryMs).unref();
    server.once('close', () => clearInterval(checking));
  }

  listen(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#open.get(request.socket);
    if (connection === undefined) {
      this.handler(request, response);
      return;
    }
    if ('content-length' in request.headers || 'transfer-encoding' in request.headers) {
      connection.arriving = request;
      connection.arrivesUntil = performance.now() + requestMs;
    }
    if (connection.open.length < atOnceMax) {
      begin(connection, request, response);
      return;
    }
    connection.waiting.push([request, response]);
    if (connection.waiting.length > waitingMax) {
      this.#cut(connection, `it sent more than ${waitingMax} requests before their answers`);
    }
  }

  #connect(socket: Socket, server: Server): void {
    const { perAddress } = this.limits;
    const connection = new Connection(this, socket, server);
    this.#open.set(socket, connection);
    connectionsBySocket.set(socket, connection);
    setCounted(connection, !connection.isProxied);
    socket.once('close', () => {
      this.#open.delete(socket);
      setCounted(connection, false);
      abandon(connection);
    });
    if (!connection.isProxied && (this.byAddress.get(connection.address) ?? 0) > perAddress) {
      this.#cut(connection, `its address has ${perAddress} others (CONNECTIONS_PER_ADDRESS_MAX)`);
    }
  }

  /** Cuts a connection, and warns of it once a minute. */
  #cut({ socket, address }: Connection, why: string): void {
    socket.destroy();
    const now = performance.now();
    const level = now - this.#warnedAt < warnEveryMs ? 'debug' : 'warn';
    if (level === 'warn') this.#warnedAt = now;
    this.#log[level]({ address }, `connection cut: ${why}`);
  }

  /** Cuts connections of slow clients, and further ones until the limit of bytes holds. */
  #cutSlow(): void {
    const now = performance.now();
    const unread: Unread[] = [];
    for (const connection of this.#open.values()) {
      if (connection.open.length === 0) {
        if (isLate(connection, now))
          this.#cut(connection, 'it did not end a refused request in time');
        continue;
      }
      if (isLate(connection, now)) {
        const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
        connection.server.emit('clientError', late, connection.socket);
        continue;
      }
      const bytes = unreadBytesOf(connection);
      connection.unreadSince = bytes === 0 ? null : (connection.unreadSince ?? now);
      const isSending = connection.socket.writableLength > 0;
      if (!isSending) connection.sendingSince = null;
      else if (connection.sendingSince === null) beginTime(connection, now);
      const { unreadSince: since, sendingSince } = connection;
      const isOver = sendingSince !== null && now - sendingSince > this.limits.answerMs;
      if (isOver && takesEnough(connection)) beginTime(connection, now);
      else if (isOver) {
        this.#cut(connection, `its client took too long for an answer (RESPONSE_TIMEOUT_MS)`);
      } else if (since !== null) unread.push({ connection, bytes, since });
    }
    const late = unread.filter(({ since }) => now - since > unreadGraceMs);
    let excess = unread.reduce((sum, { bytes }) => sum + bytes, 0) - this.limits.unreadBytes;
    if (excess <= 0) return;
    for (const { connection, bytes } of inOrderOfCutting(late)) {
      this.#cut(connection, 'clients have too many bytes of answers unread (UNREAD_ANSWERS_MB)');
      excess -= bytes;
      if (excess <= 0) return;
    }
  }
}

const connectionsBySocket = new WeakMap<Socket, Connection>();

/**
 * Counts a request that came through a trusted proxy for the address of its client, until `countByKey` or the end of
 * its response; throws `503` when too many of them are under way.
 */
export function countByAddress(request: IncomingMessage, response: ServerResponse): void {
  const connection = connectionsBySocket.get(request.socket);
  if (connection === undefined || !connection.isProxied || response.destroyed) return;
  const { limits, clients, byAddress } = connection.all;
  const address = networkOf(clients.of(request));
  if ((byAddress.get(address) ?? 0) >= limits.perAddress) {
    const message = `At most ${limits.perAddress} requests of one address may be under way at a time`;
    throw new PlatformError('service_unavailable', message, { retryAfter: 5 });
  }
  connection.ofClients.set(response, address);
  change(byAddress, address, 1);
}

/** Stops counting a request for an address, because it has a valid key, whose limits count it. */
export function countByKey(request: IncomingMessage, response: ServerResponse): void {
  const connection = connectionsBySocket.get(request.socket);
  if (connection === undefined || response.destroyed) return;
  if (connection.isProxied) releaseClient(connection, response);
  else {
    connection.ofKeys.add(response);
    setCounted(connection, false);
  }
}

/** Gives a request the time of a file: one that is admitted, before its body is read. */
export function allowLongBody(request: IncomingMessage): void {
  const connection = connectionsBySocket.get(request.socket);
  if (connection?.arriving !== request) return;
  connection.arrivesUntil = performance.now() + connection.all.limits.uploadMs;
}

const longAnswers = new WeakSet<ServerResponse>();

/** Gives an answer of many bytes as much time as it takes, while its client reads steadily. */
export function allowLongAnswer(response: ServerResponse): void {
  longAnswers.add(response);
}

const takenBy = ({ socket }: Connection) => socket.bytesWritten - socket.writableLength;

/** Begins a time within which a client reads an answer, or a part of a long one. */
function beginTime(connection: Connection, now: number): void {
  connection.sendingSince = now;
  connection.takenBefore = takenBy(connection);
}

/** Whether a client has read enough of a long answer in its time. */
function takesEnough(connection: Connection): boolean {
  const { open, takenBefore, all } = connection;
  const isLong = open[0] !== undefined && longAnswers.has(open[0]);
  return isLong && takenBy(connection) - takenBefore >= bytesPerMs * all.limits.answerMs;
}

/** Whether the last request should have arrived by now; it is answered once. */
function isLate(connection: Connection, now: number): boolean {
  const { arriving, arrivesUntil } = connection;
  if (arriving === null || now < arrivesUntil) return false;
  connection.arriving = null;
  return !arriving.complete;
}

function releaseClient({ ofClients, all }: Connection, response: ServerResponse): void {
  const address = ofClients.get(response);
  if (address === undefined) return;
  ofClients.delete(response);
  change(all.byAddress, address, -1);
}

function setCounted(connection: Connection, isCounted: boolean): void {
  if (connection.isCounted === isCounted) return;
  connection.isCounted = isCounted;
  change(connection.all.byAddress, connection.address, isCounted ? 1 : -1);
}

function change(counts: Map<string, number>, owner: string, by: number): void {
  const count = (counts.get(owner) ?? 0) + by;
  if (count > 0) counts.set(owner, count);
  else counts.delete(owner);
}

function begin(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const { all, isProxied } = connection;
  if (isProxied) connection.address = networkOf(all.clients.of(request));
  connection.open.push(response);
  // `on` costs less than `once`; a response that is abandoned may close twice.
  response.on('close', () => {
    const at = connection.open.indexOf(response);
    if (at === -1) return;
    releaseClient(connection, response);
    if (connection.ofKeys.delete(response) && connection.ofKeys.size === 0) {
      setCounted(connection, !connection.socket.destroyed);
    }
    connection.open.splice(at, 1);
    connection.unreadSince = null;
    connection.sendingSince = null;
    const next = connection.socket.destroyed ? undefined : connection.waiting.shift();
    if (next !== undefined) begin(connection, ...next);
  });
  all.handler(request, response);
}

/**
 * Ends the remaining responses of a closed connection. Node closes only the response that is being sent;
 * the handlers of the others would never learn that their client has disconnected.
 */
function abandon({ open, waiting }: Connection): void {
  waiting.length = 0;
  for (const response of [...open]) {
    response.destroy();
    if (response.socket === null) response.emit('close');
  }
}

/** Bytes that the handlers have written and the client has not read. */
function unreadBytesOf({ socket, open }: Connection): number {
  const behind = open.filter((response) => response.socket === null);
  return behind.reduce((sum, response) => sum + response.writableLength, socket.writableLength);
}

interface Unread {
  readonly connection: Connection;
  readonly bytes: number;
  readonly since: number;
}

/** First the address with the most unread bytes, and within it the oldest answer. */
function inOrderOfCutting(unread: readonly Unread[]): Unread[] {
  const sums = new Map<string, number>();
  for (const { connection, bytes } of unread) {
    sums.set(connection.address, (sums.get(connection.address) ?? 0) + bytes);
  }
  const sumOf = ({ connection }: Unread) => sums.get(connection.address) ?? 0;
  return unread.toSorted((a, b) => sumOf(b) - sumOf(a) || a.since - b.since);
}
