/**
 * A proxy between a process and PostgreSQL that loses the answers to chosen COMMITs: the server has committed, and the
 * connection breaks before the client reads a byte of the answer. COMMIT travels with the last statements of its
 * transaction, so their answers are lost with it, as they are when a server or a network fails.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CommitProxy {
  readonly port: number;
  /** COMMITs that were sent since `lose` was last called. */
  readonly commits: number;
  /** How many answers were lost since then. */
  readonly lost: number;
  /** From now on the answer to a COMMIT is lost where `isLost` says so of its number, which begins at 1. */
  lose(isLost: (n: number) => boolean): void;
  close(): void;
}

export async function startCommitProxy(port: number): Promise<CommitProxy> {
  const state = { commits: 0, lost: 0, isLost: (_: number) => false as boolean };
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const store = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const socket of [client, store]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        store.destroy();
      });
    }
    /** Whether the answers to the client are kept back, because the one to its COMMIT is to be lost. */
    let isLosing = false;
    const requests = messageReader(true, (type, body) => {
      if (type !== 'B' || statementOf(body) !== 'COMMIT') return;
      state.commits += 1;
      isLosing ||= state.isLost(state.commits);
    });
    const answers = messageReader(false, (type, body) => {
      if (!isLosing || type !== 'C' || !body.toString('latin1').startsWith('COMMIT')) return;
      state.lost += 1;
      client.resetAndDestroy();
    });
    client.on('data', (bytes: Buffer) => {
      requests(bytes);
      store.write(bytes);
    });
    store.on('data', (bytes: Buffer) => {
      answers(bytes);
      if (!isLosing) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get commits() {
      return state.commits;
    },
    get lost() {
      return state.lost;
    },
    lose(isLost) {
      Object.assign(state, { isLost, commits: 0, lost: 0 });
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Splits what one side sends into messages: a type and a length, which the first message of a client lacks the type of. */
function messageReader(
  hasStartup: boolean,
  onMessage: (type: string, body: Buffer) => void,
): (bytes: Buffer) => void {
  let left: Buffer = Buffer.alloc(0);
  let isStartup = hasStartup;
  return (bytes) => {
    left = left.length === 0 ? bytes : Buffer.concat([left, bytes]);
    for (;;) {
      const head = isStartup ? 0 : 1;
      if (left.length < head + 4) return;
      const end = head + left.readUInt32BE(head);
      if (left.length < end) return;
      if (!isStartup) onMessage(String.fromCharCode(left[0] as number), left.subarray(5, end));
      isStartup = false;
      left = left.subarray(end);
    }
  };
}

/** The prepared statement that a Bind message runs: after the name of its portal. */
function statementOf(body: Buffer): string {
  const start = body.indexOf(0) + 1;
  return body.toString('latin1', start, body.indexOf(0, start));
}
