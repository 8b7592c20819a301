/**
 * An undici Agent that connects only to allowed addresses. Every address is checked when it is connected
 * to: the agent resolves the name, checks all answers (one refused address refuses the name), connects
 * only to the checked addresses, and at the end checks the remote address of the socket. TLS is 1.2 or later and always verified; HTTP is 1.1; proxy settings of the
 * environment are not read. undici's own `connect` options are not enough: Node uses neither
 * `lookup` for literals nor `blockList` for TLS.
 */

import net from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { skipInterimResponses } from '../../kernel/interim-responses.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import { isAllowedAddress, isListedAddress, refusedAddresses } from './address-guard.ts';
import type { AllowList } from './allow-list.ts';
import { EgressError } from './egress-error.ts';
import { retryUnsent } from './keep-alive.ts';
import { type Resolve, systemResolve } from './system-resolver.ts';
import { isAllowedPort } from './url-guard.ts';

export interface GuardOptions {
  readonly allowed: AllowList;
  /** For tests; the system's resolver when left out. */
  readonly resolve?: Resolve;
  /** For DNS, TCP and TLS together; 5,000 ms when left out. */
  readonly connectTimeoutMs?: number;
  /** When left out, each request has a new connection. */
  readonly keepAlive?: KeepAlive;
  /** Certificate authorities, in PEM; those of the system are trusted when this is left out. */
  readonly ca?: ConnectionOptions['ca'];
}

/**
 * Reuses connections for later requests to the same origin, because the handshake is most of the cost of
 * a request over TLS. A reused connection still leads to its checked address. But the name is not
 * resolved again, so a change of its address takes effect only when its connections have ended, after a
 * minute at the latest. Where that matters, for example for a retry, use an agent without this option.
 */
export interface KeepAlive {
  /** Milliseconds that a connection may be idle. The receiver may announce less. */
  readonly idleMs: number;
  /** Connections to one origin at a time, busy or idle; further requests wait for one. */
  readonly connectionsMax: number;
}

const connectTimeoutMsDefault = 5_000;
const headBytesMax = 16 * 1024;
/** A connection takes no request after this age, even when it is busy. */
const connectionAgeMsMax = 60_000;

/** Creates the agent; the caller closes it. */
export function guardedAgent(options: GuardOptions): Dispatcher {
  const agent = new Agent({
    connect: guardedConnector(options),
    allowH2: false,
    ...persistence(options),
    maxHeaderSize: headBytesMax,
    // guarded-fetch.ts sets one deadline for the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return options.keepAlive === undefined ? agent : agent.compose(retryUnsent);
}

/** The options for the lifetime and the number of connections. */
function persistence({ keepAlive }: GuardOptions): Agent.Options {
  if (keepAlive === undefined) {
    // One connection for each request, so that its address is checked for each request.
    return { pipelining: 0, connections: null };
  }
  return {
    pipelining: 1,
    connections: keepAlive.connectionsMax,
    keepAliveTimeout: keepAlive.idleMs,
    // A receiver may announce a shorter time, but not a longer one.
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
    openInTime(target.hostname, connectTimeoutMs, async (deadline) => {
      const socket = await openSocket(target, options, deadline);
      return target.protocol === 'https:' ? secureSocket(secure, target, socket) : socket;
    }).then(
      (socket) => callback(null, skipInterimResponses(socket)),
      (error: Error) => callback(error, null),
    );
  };
}

/** The addresses of a host; throws when one of them is refused. */
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
    // This list would refuse the addresses that the operator allows, so it is left out for those.
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

/** A `lookup` for net.connect that returns the checked addresses. */
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
    // This listener stays for the life of the socket, so that a late error is handled.
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
      // On failure undici leaves out the second argument, against its types.
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

/** Opens a connection with a signal that aborts at the deadline, and rejects at the deadline. */
async function openInTime<Opened>(
  hostname: string,
  timeoutMs: number,
  open: (deadline: AbortSignal) => Promise<Opened>,
): Promise<Opened> {
  const deadline = new AbortController();
  const opened = await withDeadline(open(deadline.signal), timeoutMs);
  if (opened !== undefined) return opened;
  deadline.abort();
  throw connectTimeout(hostname, undefined);
}

function destroyAt(deadline: AbortSignal, socket: net.Socket): void {
  deadline.addEventListener('abort', () => socket.destroy(), { once: true });
}

function connectTimeout(hostname: string, cause: unknown): EgressError {
  return new EgressError('timeout', `Connecting to ${hostname} took too long`, { cause });
}

/** The codes of an error and of the errors in it (one for each address tried). */
function errorCodes(error: unknown): readonly string[] {
  if (error instanceof AggregateError) return error.errors.flatMap(errorCodes);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? [code] : [];
}
