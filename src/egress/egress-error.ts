/**
 * Why something outside could not be reached: one class, one closed list of codes. Messages are
 * meant for whoever asked for the request; they name the host as it was asked for, never the
 * address that it resolved to, so that a refusal tells nothing about the network inside.
 */

/** Every way in which a request can fail, and whether asking again may help. */
const retryableByCode = {
  /** The url does not parse, is too long, or is of a kind that is not allowed here. */
  invalid_url: false,
  /** A method, header or body that cannot be sent. */
  invalid_request: false,
  blocked_address: false,
  blocked_port: false,
  dns: true,
  refused: true,
  /** Connecting, or the whole request, took longer than it may. */
  timeout: true,
  tls: true,
  /** The connection broke or could not be made. */
  connection: true,
  /** The answer is not HTTP, or is encoded in a way that was not asked for. */
  protocol: false,
  too_large: false,
  too_many_redirects: false,
  /** The caller's signal aborted. */
  aborted: false,
} as const satisfies Record<string, boolean>;

export type EgressCode = keyof typeof retryableByCode;

export class EgressError extends Error {
  readonly code: EgressCode;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** False when certainly no part of the request has left this machine. */
  readonly sent: boolean;
  /** The status of the answer, where the failure came after its head (a body too large, cut off). */
  readonly status: number | null;
  /** What had arrived of that answer's body by then. */
  readonly received: Buffer;

  constructor(
    code: EgressCode,
    message: string,
    options: { sent?: boolean; status?: number | null; received?: Buffer; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'EgressError';
    this.code = code;
    this.retryable = retryableByCode[code];
    this.sent = options.sent ?? false;
    this.status = options.status ?? null;
    this.received = options.received ?? Buffer.alloc(0);
  }
}
