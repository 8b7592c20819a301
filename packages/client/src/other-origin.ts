/** Adds to the error of a page what its browser keeps from it: whether the platform is away, or refuses the page's origin. */
import { SkillwrightError } from './errors.ts';

const checkMs = 5_000;

interface Platform {
  readonly url: string;
  readonly fetch: typeof fetch;
}

/**
 * The last error of a call that did not reach the platform, with a hint where its address answers and the page may not
 * read the answer. That proves nothing: it may be the answer of a proxy in front of a platform that is away. So the call
 * has been retried as any other, and the hint is a possibility.
 */
export async function withOriginHint(
  { url, fetch }: Platform,
  error: unknown,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  if (!(error instanceof SkillwrightError) || error.code !== 'unreachable') return error;
  // Only pages and their workers have one.
  const page = (globalThis as { readonly location?: { readonly origin: string } }).location?.origin;
  if (page === undefined || !URL.canParse(url) || page === new URL(url).origin) return error;
  const isAnswered = async (mode: 'cors' | 'no-cors') => {
    const late = AbortSignal.timeout(checkMs);
    const ends = signal === undefined ? late : AbortSignal.any([late, signal]);
    try {
      // Without a header of our own, so that the browser sends it without a preflight.
      await fetch(`${url}/health`, { mode, signal: ends, credentials: 'omit' });
      return true;
    } catch {
      return false;
    }
  };
  if ((await isAnswered('cors')) || !(await isAnswered('no-cors'))) return error;
  const remedy =
    page === 'null'
      ? 'serve it from an address, which the setting CORS_ORIGINS of the platform names'
      : `the setting CORS_ORIGINS of the platform has to name its origin (CORS_ORIGINS=${page})`;
  const message = `${error.message}; its address answers what this page may not read, so if the platform is up, ${remedy}`;
  return new SkillwrightError(message, { code: 'unreachable', status: 0, cause: error.cause });
}
