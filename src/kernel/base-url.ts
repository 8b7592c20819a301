/**
 * The address of a provider, below which its paths are. An administrator names it, so it may be any
 * host, one of the private network too: a model on the operator's own machine is reached that way.
 */

/** Characters of an address. */
export const baseUrlMax = 2_048;

/** Why a text cannot be the address of a provider, as the end of a sentence; null when it can. */
export function baseUrlFault(text: string): string | null {
  if (text.length > baseUrlMax) return `must be at most ${baseUrlMax} characters`;
  // The parser drops or rewrites all of these, so that a reader and it may disagree.
  const isPlain = /^https?:\/\/[^/\\]/i.test(text) && !/[\s\p{Cc}\\]/u.test(text);
  if (!isPlain || !URL.canParse(text)) return 'must be an absolute http or https url';
  const { username, password } = new URL(text);
  if (username !== '' || password !== '') return 'must not contain credentials';
  if (text.includes('#')) return 'must not contain a fragment';
  if (text.includes('?')) return 'must not contain a query: paths are added to its end';
  return null;
}
