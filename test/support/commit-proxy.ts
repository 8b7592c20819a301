/**
 * A proxy between a process and PostgreSQL that loses the answers to chosen COMMITs: the server has committed, and the
 * connection breaks before the client reads a byte of the answer. COMMIT travels with the last statements of its
 * transaction, so their answers are lost with it, as they are when a server or a network fails.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CommitProxy {
  readonly port: number;
  /** COMMITs that were sent since `lose` was last called, of transactions with a matching statement. */
  readonly commits: number;
  /** How many answers were lost since then. */
  readonly lost: number;
  /**
   * From now on the answer to a COMMIT is lost where `isLost` says so of its number, which begins at 1. Only
   * transactions are counted in which the text of a statement matches `statement`.
   */
  lose(isLost: (n: number) => boolean, statement?: RegExp): void;
  /** The same, but the connection breaks before the COMMIT reaches the server. */
  refuse(isLost: (n: number) => boolean, statement?: RegExp): void;
  close(): void;
}

const any = /(?:)/;

export async function startCommitProxy(port: number): Promise<CommitProxy> {
  const state = {
    commits: 0,
    lost: 0,
    isLost: (_: number) => false as boolean,
    statement: any,
    isRefusing: false,
  };
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
    /** The texts of the connection's prepared statements, by name. */
    const texts = new Map<string, string>();
    let isCounted = false;
    const requests = messageReader(true, (type, body) => {
      if (type === 'P') texts.set(textAt(body, 0), textAt(body, body.indexOf(0) + 1));
      if (type !== 'B') return;
      // After the name of its portal.
      const name = textAt(body, body.indexOf(0) + 1);
      if (name !== 'COMMIT') {
        isCounted ||= state.statement.test(texts.get(name) ?? '');
        return;
      }
      if (isCounted) {
        state.commits += 1;
        isLosing ||= state.isLost(state.commits);
      }
      isCounted = false;
    });
    const breakConnection = () => {
      state.lost += 1;
      client.resetAndDestroy();
    };
    const answers = messageReader(false, (type, body) => {
      if (!isLosing || type !== 'C' || !body.toString('latin1').startsWith('COMMIT')) return;
      breakConnection();
    });
    client.on('data', (bytes: Buffer) => {
      requests(bytes);
      if (isLosing && state.isRefusing) breakConnection();
      else store.write(bytes);
    });
    store.on('data', (bytes: Buffer) => {
      answers(bytes);
      if (!isLosing) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const begin = (faults: Pick<typeof state, 'isLost' | 'statement' | 'isRefusing'>) =>
    void Object.assign(state, faults, { commits: 0, lost: 0 });
  return {
    port: (server.address() as AddressInfo).port,
    get commits() {
      return state.commits;
    },
    get lost() {
      return state.lost;
    },
    lose: (isLost, statement = any) => begin({ isLost, statement, isRefusing: false }),
    refuse: (isLost, statement = any) => begin({ isLost, statement, isRefusing: true }),
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

/** The text of a message from a byte on, to the next zero byte. */
function textAt(body: Buffer, start: number): string {
  return body.toString('utf8', start, body.indexOf(0, start));
}
