/**
 * Addresses and arguments that hold no credentials. Secrets stand in many places and forms, so these rules recognize what is
 * usual and cannot be one, and take everything else for a secret. A host is none: DNS and TLS send it unencrypted.
 */

/** Up to four short words, versions and names of documents, such as `/mcp`, `/api/v1` and `/petstore/openapi.json`. */
const plainPath = /^(?:\/(?:v\d{1,2}|[a-z]{1,12}(?:-[a-z]{1,12})?(?:\.json|\.ya?ml)?)){0,4}\/?$/;
/** A flag without a value, such as `-y` and `--read-only`. */
const flag = /^(?:-[a-zA-Z]|--[a-z]{1,12}(?:-[a-z]{1,12}){0,3})$/;
/** A word or the name of a package, such as `stdio` and `@acme/mcp-server@1.2.3`. */
const name =
  /^(?:@[a-z]{1,12}(?:-[a-z]{1,12}){0,3}\/)?[a-z]{1,12}(?:-[a-z]{1,12}){0,4}(?:@(?:latest|\d{1,4}(?:\.\d{1,4}){0,2}))?$/;
/** The file of a program. */
const program = /^[^=:,\s]{1,1000}\.(?:[cm]?[jt]s|py|rb|jar|sh)$/;

/** Why an address may hold credentials, as the end of a sentence about `field`; null where it holds none. */
export function whyNotPlain(field: string, address: string): string | null {
  const url = URL.parse(address);
  if (url === null || url.href !== url.origin + url.pathname) {
    return `${field} has a query or other parts that may hold a secret`;
  }
  if (plainPath.test(url.pathname)) return null;
  return `the path of ${field} may hold a secret (one of a few short words, such as /mcp and /api/v1, cannot)`;
}

/** Why the arguments of a command may hold credentials, as the end of a sentence; null where they hold none. */
export function whyNotPlainArgs(args: readonly string[]): string | null {
  const isPlain = (one: string) => flag.test(one) || name.test(one) || program.test(one);
  const at = args.findIndex((one) => !isPlain(one));
  if (at === -1) return null;
  return `args.${at} may hold a secret (flags without values, short words, names of packages and files of programs cannot)`;
}

/** An address as holders of API keys may see it: without the parts that may hold a secret. */
export function shownAddress(address: string): string {
  const url = URL.parse(address);
  if (url === null) return '';
  return plainPath.test(url.pathname) ? url.origin + url.pathname : url.origin;
}
