/** The notifications that a client gets during a call: the progress and the log of its job. */
import type { ServerContext } from '@modelcontextprotocol/server';
import { objectOf } from '../../kernel/json.ts';

export interface Progress {
  readonly fraction: number;
  readonly note: string | null;
}

export class ClientNotices {
  readonly #request: ServerContext['mcpReq'];
  /** Undefined for a client that requests no progress. */
  readonly #progressToken: string | number | undefined;
  readonly #hasLog: boolean;
  #last = -1;

  /** `isModern`: a client of the revision 2026-07-28 declares with each call whether it reads the log. */
  constructor({ mcpReq }: ServerContext, isModern: boolean) {
    const level = objectOf(mcpReq.envelope)?.['io.modelcontextprotocol/logLevel'];
    this.#request = mcpReq;
    this.#progressToken = mcpReq._meta?.progressToken;
    this.#hasLog = !isModern || level !== undefined;
  }

  /** Whether the client gets any. */
  get hasAny(): boolean {
    return this.#hasLog || this.#progressToken !== undefined;
  }

  sendLog(line: Readonly<Record<string, unknown>>): void {
    if (this.#hasLog) this.#request.log('info', line).catch(() => {});
  }

  /** Progress only ever increases, as the protocol requires. */
  sendProgress({ fraction, note }: Progress): void {
    const progressToken = this.#progressToken;
    if (progressToken === undefined || fraction <= this.#last) return;
    this.#last = fraction;
    const params = { progressToken, progress: fraction, total: 1 };
    const message = note === null ? {} : { message: note };
    // A client that has gone gets none.
    this.#request
      .notify({ method: 'notifications/progress', params: { ...params, ...message } })
      .catch(() => {});
  }
}
