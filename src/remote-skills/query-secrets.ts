/**
 * Which values in the query of a service's address are hidden as secrets. A value is taken for a secret unless its name
 * and its form both tell that it is none, because a secret that is shown cannot be taken back. Pure.
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
