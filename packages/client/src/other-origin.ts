/** Finds out whether a browser keeps the answers of a platform from its page, of which the page learns nothing. */
import { SkillwrightError } from './errors.ts';

const checkMs = 5_000;

interface Platform {
  readonly url: string;
  readonly fetch: typeof fetch;
}

/**
 * The error for a page whose origin the platform does not allow; null anywhere else. A platform that answers, and whose
 * answer the page may not read, is neither down nor slow, so another attempt would be refused too.
 */
export async function originRefusal(
  { url, fetch }: Platform,
  signal: AbortSignal | undefined,
): Promise<SkillwrightError | null> {
  // Only pages and their workers have one.
  const page = (globalThis as { readonly location?: { readonly origin: string } }).location?.origin;
  if (page === undefined || !URL.canParse(url) || page === new URL(url).origin) return null;
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
  if ((await isAnswered('cors')) || !(await isAnswered('no-cors'))) return null;
  const remedy =
    page === 'null'
      ? 'serve it from an address, which the setting CORS_ORIGINS of the platform names'
      : `the setting CORS_ORIGINS of the platform has to name this origin (CORS_ORIGINS=${page})`;
  const message = `${url} does not allow this page to call it: ${remedy}`;
  return new SkillwrightError(message, { code: 'origin_not_allowed', status: 0 });
}
