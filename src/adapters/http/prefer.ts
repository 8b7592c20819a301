/** `Prefer: wait=N` (RFC 7240): how long a client waits for the end of a job. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';

/** The longest wait in seconds; longer ones are shortened to it. */
const waitMaxS = 60;

const waitPattern = /^\s*wait\s*=\s*"?(\d+)"?\s*(?:;|$)/i;

/** The header in the schema of a route. */
export const Prefer = Type.Optional(
  Type.String({
    description:
      'wait=N, up to 60 seconds. A list, which may be repeated: the first wait counts, and one that cannot be parsed is ignored.',
  }),
);

/** Whole seconds asked for, or 0. A header that does not parse is ignored, as the RFC says. */
export function waitSeconds(prefer: string | string[] | undefined): number {
  if (prefer === undefined) return 0;
  const text = Array.isArray(prefer) ? prefer.join(',') : prefer;
  for (const preference of preferencesOf(text)) {
    const wait = waitPattern.exec(preference);
    if (wait !== null) return Math.min(waitMaxS, Number(wait[1]));
  }
  return 0;
}

/**
 * The preferences of a header: they are separated by commas outside quotes. A loop instead of a
 * regular expression: it reads each character once, also where a quote is never closed.
 */
function* preferencesOf(text: string): Generator<string> {
  let start = 0;
  let isQuoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') isQuoted = !isQuoted;
    else if (character === '\\' && isQuoted) i++;
    else if (character === ',' && !isQuoted) {
      yield text.slice(start, i);
      start = i + 1;
    }
  }
  if (!isQuoted) yield text.slice(start);
}

/** A signal that aborts when the client disconnects. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort();
  else reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

/**
 * A signal that aborts when the client disconnects or the platform stops. Not `AbortSignal.any`: that takes eleven
 * microseconds, and `stopping` would refer to all such signals until V8 has marked the whole heap.
 */
export function goneOrStopping(reply: FastifyReply, stopping: AbortSignal): AbortSignal {
  const over = new AbortController();
  const abort = () => over.abort();
  if (reply.raw.destroyed || stopping.aborted) abort();
  else {
    stopping.addEventListener('abort', abort);
    reply.raw.once('close', () => {
      stopping.removeEventListener('abort', abort);
      // After the answer the signal has no listener, and an abort would make an error with its stack.
      if (!reply.raw.writableFinished) abort();
    });
  }
  return over.signal;
}
