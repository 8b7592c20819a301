/**
 * An undici Agent that connects only where it may. Promises that every address is judged at the
 * moment it is connected to: a name is resolved here, all its answers are judged (one bad answer
 * refuses the name), only the judged addresses are connected to, and the socket is asked in the end
 * whom it reached. TLS is 1.2 or later and always verified; HTTP is 1.1; proxy settings of the
 * environment are not read. undici's own `connect` options would not do: Node consults neither
 * `lookup` for literals nor `blockList` for TLS.
 */

import net from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { isAllowedAddress, isListedAddress, refusedAddresses } from './address-guard.ts';
import type { AllowList } from './allow-list.ts';
import { EgressError } from './egress-error.ts';
import { overKeptConnections } from './kept-connections.ts';
import { type Resolve, systemResolve } from './system-resolver.ts';
import { isAllowedPort } from './url-guard.ts';

export interface GuardOptions {
  readonly allowed: AllowList;
  /** For tests; the system's resolver when left out. */
  readonly resolve?: Resolve;
  /** For DNS, TCP and TLS together; 5,000 ms when left out. */
  readonly connectTimeoutMs?: number;
  /** Connections to one origin at a time; without end when left out. */
  readonly connectionsMax?: number;
  /** A connection for each request when left out. */
  readonly keepAlive?: KeepAlive;
  /** Further certificate authorities, in PEM. The system's stay trusted when this is left out. */
  readonly ca?: ConnectionOptions['ca'];
}

/**
 * Keeps connections for the next request to the same origin, because most of what a request over
 * TLS costs both sides is its handshake. No request leads anywhere that was not judged: a kept
 * connection goes on to the address it was made to. But it is not judged again, so a name that
 * has changed its address is noticed only when its connections have ended, after a minute at the
 * latest. Where that matters, as for a retry, use a way out without this option.
 */
export interface KeepAlive {
  /** Milliseconds that a connection may be idle. The receiver may announce less. */
  readonly idleMs: number;
  /** Connections to one origin at a time, busy or idle; further requests wait for one. */
  readonly connectionsMax: number;
}

const connectTimeoutMsDefault = 5_000;
const headBytesMax = 16 * 1024;
/** A kept connection takes no request after this age, however busy it is. */
const connectionAgeMsMax = 60_000;

/** Makes the agent. Whoever makes it closes it. */
export function guardedAgent(options: GuardOptions): Dispatcher {
  const agent = new Agent({
    connect: guardedConnector(options),
    allowH2: false,
    ...persistence(options),
    maxHeaderSize: headBytesMax,
    // One deadline for the whole request is the caller's (guarded-fetch.ts).
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return options.keepAlive === undefined ? agent : agent.compose(overKeptConnections);
}

/** How long connections live, and how many there are. */
function persistence({ connectionsMax, keepAlive }: GuardOptions): Agent.Options {
  if (keepAlive === undefined) {
    // One connection for one request, so that each request has its address judged anew.
    return { pipelining: 0, connections: connectionsMax ?? null };
  }
  return {
    pipelining: 1,
    connections: keepAlive.connectionsMax,
    keepAliveTimeout: keepAlive.idleMs,
    // What a receiver announces may shorten the time, but not lengthen it.
    keepAliveMaxTimeout: keepAlive.idleMs,
    clientTtl: connectionAgeMsMax,
  };
}

/** The connector behind the agent; fails with an EgressError whose `sent` is false. */
function guardedConnector(options: GuardOptions): buildConnector.connector {
  const connectTimeoutMs = options.connectTimeoutMs ?? connectTimeoutMsDefault;
  const secure = buildConnector({
    allowH2: false,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    maxCachedSessions: 0,
    timeout: connectTimeoutMs,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
  return (target, callback) => {
    withDeadline(target.hostname, connectTimeoutMs, async (deadline) => {
      const socket = await openSocket(target, options, deadline);
      return target.protocol === 'https:' ? secureSocket(secure, target, socket) : socket;
    }).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/** The addresses of a host that may be connected to, or an error: one refused, all refused. */
async function vettedAddresses(
  hostname: string,
  port: number,
  { allowed, resolve = systemResolve }: GuardOptions,
): Promise<readonly string[]> {
  const addresses = net.isIP(hostname) === 0 ? await resolveName(hostname, resolve) : [hostname];
  if (!addresses.every((address) => isAllowedAddress(address, allowed))) {
    throw new EgressError('blocked_address', `The address of ${hostname} is not allowed`);
  }
  if (!addresses.every((address) => isAllowedPort(port, address, allowed))) {
    throw new EgressError('blocked_port', `Port ${port} of ${hostname} is not allowed`);
  }
  return addresses;
}

async function resolveName(hostname: string, resolve: Resolve): Promise<readonly string[]> {
  const notFound = `The name ${hostname} could not be resolved`;
  const addresses = await resolve(hostname).catch((cause: unknown) => {
    throw new EgressError('dns', notFound, { cause });
  });
  if (addresses.length === 0) throw new EgressError('dns', notFound);
  return addresses;
}

async function openSocket(
  target: buildConnector.Options,
  options: GuardOptions,
  deadline: AbortSignal,
): Promise<net.Socket> {
  const { hostname } = target;
  const port = Number(target.port || (target.protocol === 'https:' ? 443 : 80));
  const addresses = await vettedAddresses(hostname, port, options);
  deadline.throwIfAborted();
  const socket = net.connect({
    host: hostname,
    port,
    lookup: answering(addresses),
    autoSelectFamily: true,
    noDelay: true,
    // What the operator listed is refused by this list, so it judges only without such addresses.
    ...(addresses.some((address) => isListedAddress(address, options.allowed))
      ? {}
      : { blockList: refusedAddresses() }),
  });
  destroyAt(deadline, socket);
  await connected(socket, hostname);
  const reached = socket.remoteAddress ?? '';
  if (!isAllowedAddress(reached, options.allowed)) {
    socket.destroy();
    throw new EgressError('blocked_address', `The address of ${hostname} is not allowed`);
  }
  return socket;
}

/** A `lookup` for net.connect that knows nothing but the addresses judged. */
function answering(addresses: readonly string[]): net.LookupFunction {
  const answers = addresses.map((address) => ({ address, family: net.isIP(address) }));
  return (_hostname, options, callback) => {
    const [first] = answers;
    if (options.all === true || first === undefined) callback(null, answers);
    else callback(null, first.address, first.family);
  };
}

function connected(socket: net.Socket, hostname: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    // Stays for the life of the socket, so that no late error is without a listener.
    socket.on('error', (error) => reject(connectionError(hostname, error)));
    socket.once('close', () => reject(connectionError(hostname, undefined)));
  });
}

function connectionError(hostname: string, cause: unknown): EgressError {
  const codes = errorCodes(cause);
  if (codes.includes('ERR_IP_BLOCKED')) {
    return new EgressError('blocked_address', `The address of ${hostname} is not allowed`);
  }
  if (codes.includes('ECONNREFUSED')) {
    return new EgressError('refused', `${hostname} refused the connection`, { cause });
  }
  if (codes.includes('ETIMEDOUT')) return connectTimeout(hostname, cause);
  return new EgressError('connection', `No connection to ${hostname} could be made`, { cause });
}

function secureSocket(
  secure: buildConnector.connector,
  target: buildConnector.Options,
  httpSocket: net.Socket,
): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    secure({ ...target, httpSocket }, (error, socket) => {
      // On failure undici leaves the second argument out, whatever its types say.
      if (error === null) return resolve(socket);
      httpSocket.destroy();
      const [reason = 'handshake failed'] = errorCodes(error);
      reject(
        new EgressError('tls', `No secure connection to ${target.hostname}: ${reason}`, {
          cause: error,
        }),
      );
    });
  });
}

/** Runs `task` with a signal that aborts at the deadline, and fails then at the latest. */
async function withDeadline<Result>(
  hostname: string,
  timeoutMs: number,
  task: (deadline: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const deadline = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    deadline.abort();
    expired.reject(connectTimeout(hostname, undefined));
  }, timeoutMs);
  try {
    return await Promise.race([task(deadline.signal), expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function destroyAt(deadline: AbortSignal, socket: net.Socket): void {
  deadline.addEventListener('abort', () => socket.destroy(), { once: true });
}

function connectTimeout(hostname: string, cause: unknown): EgressError {
  return new EgressError('timeout', `Connecting to ${hostname} took too long`, { cause });
}

/** The codes of an error and of those that it collects (one for each address tried). */
function errorCodes(error: unknown): readonly string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(errorCodes);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? [code] : [];
}
