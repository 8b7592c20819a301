/**
 * The errors of outgoing requests: one class with a closed list of codes. A message is for the author of
 * the request. It names the host of the url, never the resolved address, so that a refusal reveals
 * nothing about the internal network.
 */

/** Every way in which a request can fail, and whether a retry may help. */
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
  /** False when no part of the request has left this machine. */
  readonly sent: boolean;
  /** The status of the answer, when the failure came after its headers (body too large, or cut off). */
  readonly status: number | null;
  /** The part of that answer's body that had arrived. */
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
