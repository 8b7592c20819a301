/**
 * The digest of an input, which also has a digest of each of its fields: so a difference between two inputs
 * can be named although neither is stored.
 */
import { digestOf } from './digest.ts';
import { isObject } from './json.ts';
import { canonicalJson } from './text.ts';

/** Fields that are told apart; of an input with more of them only the whole is compared. */
const fieldsMax = 24;
const nameCharsMax = 40;
/** Of a digest with those of its fields; of names that are too long only the whole is compared. */
export const digestCharsMax = 1_000;
/** Characters of the digest of a field, and of a digest that is shown. */
const shortChars = 6;

/** The digest of the whole, and after it `name=digest` of each field. A space is in none of them. */
export function inputDigestOf(input: unknown): string {
  const whole = digestOf(canonicalJson(input));
  const fields = fieldsOf(input, '');
  if (fields.length === 0 || fields.length > fieldsMax) return whole;
  const digests = fields.map(
    ([name, value]) => `${name}=${digestOf(canonicalJson(value)).slice(0, shortChars)}`,
  );
  const full = [whole, ...digests].join(' ');
  return full.length <= digestCharsMax ? full : whole;
}

/** The digest of the whole input alone. */
export function wholeDigest(digest: string): string {
  return digest.split(' ', 1)[0] as string;
}

/** How an input differs from the recorded one, as a sentence for the author of a skill. */
export function differenceOf(recorded: string, asked: string): string {
  const [before, now] = [digestsOf(recorded), digestsOf(asked)];
  const names = [...new Set([...before.keys(), ...now.keys()])];
  const differing = names.filter((name) => before.get(name) !== now.get(name));
  if (before.size > 0 && now.size > 0 && differing.length > 0) {
    return `its input differs in ${differing.map((name) => decodeURIComponent(name)).join(', ')}`;
  }
  const [was, is] = [recorded, asked].map((digest) => digest.slice(0, shortChars));
  return `its input differs (digest ${was} on record, ${is} now)`;
}

/** The fields of an input, and instead of a field that is an object its own fields. */
function fieldsOf(value: unknown, prefix: string): [name: string, value: unknown][] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    const path = `${prefix}${encodeURIComponent(name.slice(0, nameCharsMax).toWellFormed())}`;
    const inner = prefix === '' ? fieldsOf(field, `${path}.`) : [];
    return inner.length > 0 ? inner : [[path, field]];
  });
}

function digestsOf(digest: string): Map<string, string> {
  const [, ...fields] = digest.split(' ');
  return new Map(fields.map((field) => field.split('=') as [string, string]));
}
