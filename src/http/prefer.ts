/** `Prefer: wait=N` (RFC 7240): how long a client is ready to wait for an end. */
import type { FastifyReply } from 'fastify';

/** Seconds that a wait may take; a longer one counts as this. */
const waitMaxS = 60;

/** Preferences are separated by commas that stand outside quotes. */
const preferencePattern = /(?:[^,"]|"(?:[^"\\]|\\.)*")+/g;
const waitPattern = /^\s*wait\s*=\s*"?(\d+)"?\s*(?:;|$)/i;

/** Whole seconds asked for, or 0. A header that does not parse is ignored, as the RFC says. */
export function waitSeconds(prefer: string | string[] | undefined): number {
  const text = Array.isArray(prefer) ? prefer.join(',') : (prefer ?? '');
  for (const preference of text.match(preferencePattern) ?? []) {
    const wait = waitPattern.exec(preference);
    if (wait !== null) return Math.min(waitMaxS, Number(wait[1]));
  }
  return 0;
}

/** Aborts when the client has gone. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort();
  else reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
