/**
 * Secrets in the query of a service's address and in the arguments of its command. A value of a query counts as a secret
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
  return name.length >= nameCharsMin && words.test(value) && !consonants.test(value);
}

/** `--token=x`, `API_KEY=x` and `Authorization: Bearer x`. */
const namedValue = /^-{0,2}([\w.-]+)\s{0,3}[:=]\s{0,3}(\S.*)$/s;
/** `--token`, with the value in the next argument. */
const flag = /^--?([\w.-]+)$/;
/** Long enough for a token, of letters and digits. */
const tokenLike = /^(?=.{0,200}\d)(?=.{0,200}[a-z])[\w-]{20,}$/i;

/** Whether the arguments of a command have a secret: by its name, in an address, or by its form. */
export function hasSecretInArgs(args: readonly string[]): boolean {
  return args.some((arg, i) => {
    const [, name = '', value = arg] = namedValue.exec(arg) ?? [];
    const [, before = ''] = flag.exec(args[i - 1] ?? '') ?? [];
    const isNamed = secretName.test(name) || (secretName.test(before) && !arg.startsWith('-'));
    return isNamed || [arg, value].some((text) => tokenLike.test(text) || hasSecretInUrl(text));
  });
}

function hasSecretInUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.password !== '' || secretsInQuery(url.search).some(Boolean));
}
