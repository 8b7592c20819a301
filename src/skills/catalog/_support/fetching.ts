/**
 * How the catalog's skills ask for something outside: through the guarded way out, with its
 * failures turned into the platform's (specification: docs/decisions/jobs.md, error codes).
 */

import { EgressError } from '../../../egress/egress-error.ts';
import type { EgressRequest, EgressResponse } from '../../../egress/guarded-fetch.ts';
import { SkillError } from '../../definition.ts';

/** Methods that may be sent twice without doing more than once. */
const repeatable: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

type Asked = EgressRequest & { readonly signal: AbortSignal };

/**
 * Sends the request. Fails with the signal's reason when that aborts, with a SkillError that is not
 * retryable for what will not change (a refused address, an answer too large), and with
 * `upstream_unavailable` for what may: retryable, unless a request that must not be repeated may
 * have arrived.
 */
export async function fetchOutside(url: string, asked: Asked): Promise<EgressResponse> {
  try {
    // Loaded by the first run that needs it: it would cost every executor a third of its memory.
    const { skillsEgress } = await import('../../../egress/skills-egress.ts');
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

/** Fails with `upstream_unavailable` when the status says that the server cannot answer now. */
export function assertAvailable(response: EgressResponse): void {
  const { status, url } = response;
  if (status < 500 && status !== 408 && status !== 429) return;
  throw new SkillError(`${new URL(url).hostname} answered with status ${status}`, {
    code: 'upstream_unavailable',
  });
}

/** A header as one text; empty when it is not there. */
export function header(response: EgressResponse, name: string): string {
  const value = response.headers[name];
  return typeof value === 'string' ? value : (value ?? []).join(', ');
}
