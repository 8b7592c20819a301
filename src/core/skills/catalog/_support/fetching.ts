/**
 * HTTP requests of the catalog's skills. They go through the guarded client, and its failures become the
 * platform's error codes (docs/decisions/jobs.md).
 */

import { EgressError } from '../../../../adapters/egress/egress-error.ts';
import type { EgressRequest, EgressResponse } from '../../../../adapters/egress/guarded-fetch.ts';
import { retryAfterOf } from '../../../../adapters/egress/retry-after.ts';
import { SkillError } from '../../definition.ts';

/** Idempotent methods. */
const repeatable: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

type Asked = EgressRequest & { readonly signal: AbortSignal };

/**
 * Sends the request. Rejects with the signal's reason when it aborts; with a SkillError that is not
 * retryable for a permanent failure (a refused address, an answer too large); and with
 * `upstream_unavailable` for a temporary one, which is retryable unless the request is not idempotent
 * and may have arrived.
 */
export async function fetchOutside(url: string, asked: Asked): Promise<EgressResponse> {
  try {
    // Loaded by the first run that needs it, because it takes a third of an executor's memory.
    const { skillsEgress } = await import('../../../../adapters/egress/skills-egress.ts');
    return await skillsEgress().request(url, asked);
  } catch (error) {
    asked.signal.throwIfAborted();
    if (!(error instanceof EgressError)) throw error;
    const mayRepeat = !error.sent || repeatable.has(asked.method ?? 'GET');
    throw new SkillError(error.message, {
      code: error.retryable ? 'upstream_unavailable' : 'skill_execution_failed',
      retryable: error.retryable && mayRepeat,
      // The platform shows causes too; the error itself would only repeat the message.
      cause: error.cause,
    });
  }
}

/**
 * Throws `upstream_unavailable` when the status says that the server cannot answer now; a next attempt waits for as long as its
 * `Retry-After` asks.
 */
export function assertAvailable(response: EgressResponse): void {
  const { status } = response;
  if (status >= 500 || status === 408 || status === 429) throw unavailable(response);
}

/** The same for a skill to which other statuses are answers: when the server says after which time to send the request again. */
export function assertNotPutOff(response: EgressResponse): void {
  const error = unavailable(response);
  if (response.status === 429 && error.retryAfterMs !== undefined) throw error;
}

function unavailable(response: EgressResponse): SkillError {
  const { hostname } = new URL(response.url);
  return new SkillError(`${hostname} answered with status ${response.status}`, {
    code: 'upstream_unavailable',
    retryAfterMs: retryAfterOf(response, Date.now()) ?? undefined,
  });
}

/** A header as one text; empty when it is not there. */
export function header(response: EgressResponse, name: string): string {
  const value = response.headers[name];
  return typeof value === 'string' ? value : (value ?? []).join(', ');
}
