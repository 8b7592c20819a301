/**
 * Secrets in the address of a service and in the arguments of its command, to be kept out of the service's texts. They are
 * recognized by name and form, so nothing else may depend on it: some are missed. A value of a query counts as a secret
 * unless both its name and its form are harmless, because a secret that is shown cannot be taken back. Pure.
 */

/** The values that are secrets, as they stand in the query and decoded; the name of a parameter without a value. */
export function secretsInQuery(query: string): string[] {
  return query
    .replace(/^\?/, '')
    .split('&')
    .flatMap((parameter) => {
      const at = parameter.indexOf('=');
      const name = at === -1 ? '' : decoded(parameter.slice(0, at));
      const value = parameter.slice(at + 1);
      return isHarmless(name, decoded(value)) ? [] : [value, decoded(value)];
    });
}

const decoded = (text: string) => new URLSearchParams(`=${text}`).get('') ?? '';

/** Parts of names of secrets: `api_key`, `exaApiKey`, `X-Amz-Signature`, `authcode`. */
const secretName =
  /key|token|secret|pass|pwd|pin|auth|oauth|sig|cred|code|session|sid|jwt|bearer|private|access|hash|hmac|sas|otp|login|user|account|license/i;
/** A shorter name tells nothing. */
const nameCharsMin = 3;

/** `2025-06-18`, `20250618` and `2025-06-18T09:30:00Z`. */
const moment =
  /^(?:19|20)\d\d(-?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:T[\d:.]{1,15}(?:Z|[+-][\d:]{4,5})?)?$/;
/** `production`, `read-only` and `Files,Issues`; random letters alternate their case or hardly have vowels. */
const words = /^(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})(?:[ ,._-](?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15}))*$/;
const consonants = /[b-df-hj-np-tv-xz]{5}/i;

function isHarmless(name: string, value: string): boolean {
  if (secretName.test(name)) return false;
  if (moment.test(value)) return true;
  return name.length >= nameCharsMin && areWords(value);
}

/** Words of a language, not random letters. */
export const areWords = (text: string): boolean => words.test(text) && !consonants.test(text);

/** Characters of a segment of a path that may be a secret. Results often repeat shorter ones, such as ids. */
const segmentCharsMin = 16;

/** The segments of a path that are secrets, as they stand in it and decoded. */
function secretsInPath(path: string): string[] {
  return path
    .split('/')
    .filter((segment) => segment.length >= segmentCharsMin && !areWords(decoded(segment)))
    .flatMap((segment) => [segment, decoded(segment)]);
}

/** `--token=x`, `API_KEY=x` and `Authorization: Bearer x`. */
const namedValue = /^-{0,2}([\w.-]+)\s{0,3}[:=]\s{0,3}(\S.*)$/s;
/**
 * Names of secrets among arguments: they end so, as `--api-key` and `APIKEY` do, or have such a part, as `--token-value`
 * and `DB_PASSWORD_MAIN` do, and `--keyspace` and `--user` do not.
 */
const secretArgName =
  /(?:key|token|secret|pass|password|passwd|passphrase|pwd|auth|authorization|credentials?|jwt|bearer|sig|signature|otp)(?:$|[-_.])|(?:^|[-_.])(?:pin|login|code)(?:$|[-_.])/i;
/** `--token`, with the value in the next argument. */
const flag = /^--?([\w.-]+)$/;
/** Long enough for a token, of letters and digits. */
const tokenLike = /^(?=.{0,200}\d)(?=.{0,200}[a-z])[\w-]{20,}$/i;

/** The arguments of a command that are secrets: by name, in an address, or by form. */
export function secretsInArgs(args: readonly string[]): string[] {
  return args.flatMap((arg, i) => {
    const [, name = '', value = arg] = namedValue.exec(arg) ?? [];
    const [, before = ''] = flag.exec(args[i - 1] ?? '') ?? [];
    const isNamed =
      secretArgName.test(name) || (secretArgName.test(before) && !arg.startsWith('-'));
    // Of `Bearer x` also `x`.
    const texts = [value, value.slice(value.lastIndexOf(' ') + 1)];
    if (isNamed) return texts;
    const inUrls = [arg, value].flatMap(secretsInUrl);
    return [...texts.filter((text) => tokenLike.test(text)), ...inUrls];
  });
}

/** The password, and the secrets of query and path. */
export function secretsInUrl(text: string): string[] {
  const url = text.includes('://') ? URL.parse(text) : null;
  if (url === null) return [];
  const { password, search, pathname } = url;
  return [password, decoded(password), ...secretsInQuery(search), ...secretsInPath(pathname)];
}
