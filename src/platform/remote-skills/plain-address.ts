/**
 * Addresses that hold no credentials. A secret in a path looks like any other word, so a path counts as free of one only
 * if it consists of a few words that an attacker would guess anyway. A host is no secret: DNS and TLS send it unencrypted.
 */
const guessablePath =
  /^(?:\/(?:api|mcp|sse|rest|docs|v\d|(?:openapi|swagger|api-docs)(?:\.json|\.ya?ml)?)){0,3}\/?$/;

/** Why an address may hold credentials, as the end of a sentence about `field`; null where it holds none. */
export function whyNotPlain(field: string, address: string): string | null {
  const url = URL.parse(address);
  if (url === null || url.href !== url.origin + url.pathname) {
    return `${field} has a query or other parts that may hold a secret`;
  }
  if (guessablePath.test(url.pathname)) return null;
  return `the path of ${field} may hold a secret (only usual ones, such as /mcp, /api/v1 and /openapi.json, cannot)`;
}

/** An address as holders of API keys may see it: without the parts that may hold a secret. */
export function shownAddress(address: string): string {
  const url = URL.parse(address);
  if (url === null) return '';
  return guessablePath.test(url.pathname) ? url.origin + url.pathname : url.origin;
}
