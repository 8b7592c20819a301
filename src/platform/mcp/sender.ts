import type { Caller } from '../../kernel/caller.ts';
import type { CallOptions } from './calls.ts';

/** What the HTTP request says of its sender, as the SDK carries it. */
export interface Sender {
  readonly caller: Caller;
  readonly options: Pick<CallOptions, 'agentId' | 'userId' | 'idempotencyKey'>;
  /** Where a client reads which credentials the endpoint takes. */
  readonly metadataUrl: string;
  /** Whether lists have each version of a skill under its own name. */
  readonly hasAllVersions: boolean;
  /** Whether the request may be about skills to read; other requests are served without loading them. */
  readonly isProse: boolean;
}

/** The sender of a request, as set by the route. */
export function senderOf(authInfo: { extra?: Record<string, unknown> } | undefined): Sender {
  return authInfo?.extra?.['sender'] as Sender;
}
