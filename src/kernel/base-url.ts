/**
 * The base url of a model provider. An administrator sets it, so it may be any host, also one of the
 * private network: this is how a model on the operator's own machine is reached.
 */

/** Characters of an address. */
export const baseUrlMax = 2_048;

/** Why a text cannot be the address of a provider, as the end of a sentence; null when it can. */
export function baseUrlFault(text: string): string | null {
  if (text.length > baseUrlMax) return `must be at most ${baseUrlMax} characters`;
  // The parser drops or rewrites these characters, so the url may mean something else than it looks.
  const isPlain = /^https?:\/\/[^/\\]/i.test(text) && !/[\s\p{Cc}\\]/u.test(text);
  if (!isPlain || !URL.canParse(text)) return 'must be an absolute http or https url';
  const { username, password } = new URL(text);
  if (username !== '' || password !== '') return 'must not contain credentials';
  if (text.includes('#')) return 'must not contain a fragment';
  if (text.includes('?')) return 'must not contain a query: paths are added to its end';
  return null;
}

/** An address without its credentials, query and fragment, which may hold secrets, for texts that others read. */
export function addressWithoutSecrets(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? '' : `${parsed.origin}${parsed.pathname}`;
}
