/**
 * Finds personal data by its form and its check digits. Each kind looks at a bounded number of characters around a place, so
 * that the time grows with the length of the text alone, whatever it is made of.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { withoutEscapes } from './json-escapes.ts';

export const dataKinds = ['email', 'card', 'iban', 'ip', 'phone'] as const;
export type DataKind = (typeof dataKinds)[number];

export interface Found {
  readonly kind: DataKind;
  readonly start: number;
  readonly end: number;
}

/** The spaces and hyphens of HTML and PDF; each is one unit, so a place in the text stays the same. */
const otherSpaces = /\p{Zs}/gu;
const otherHyphens = /(?<=[\d)])[\u2010-\u2015\u2212\ufe58\ufe63\uff0d](?=\d)/g;

/** Finds of each kind, in any order. */
const finders: Readonly<Record<DataKind, (text: string) => Found[]>> = {
  email: findEmails,
  card: findCards,
  iban: findIbans,
  ip: findAddresses,
  phone: findPhones,
};

/** What is found of the kinds, in the order of the text. Two that overlap count as one, of the kind that comes first in `dataKinds`. */
export function findPersonalData(text: string, kinds: readonly DataKind[]): Found[] {
  const plain = withoutEscapes(text).replace(otherSpaces, ' ').replace(otherHyphens, '-');
  const found = kinds.flatMap((kind) => finders[kind](plain)).sort((a, b) => a.start - b.start);
  const kept: Found[] = [];
  for (const one of found) {
    const last = kept.at(-1);
    if (last === undefined || one.start >= last.end) kept.push(one);
    else kept[kept.length - 1] = union(last, one);
  }
  return kept;
}

const rankOf = ({ kind }: Found) => dataKinds.indexOf(kind);

function union(a: Found, b: Found): Found {
  const { kind } = rankOf(a) <= rankOf(b) ? a : b;
  return { kind, start: Math.min(a.start, b.start), end: Math.max(a.end, b.end) };
}

/** Characters of the part before the @, and of the domain (RFC 5321). */
const localMax = 64;
const domainMax = 255;
const inLocal = /[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]/u;
const inDomain = /[\p{L}\p{M}\p{N}.-]/u;

function findEmails(text: string): Found[] {
  const found: Found[] = [];
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let start = at;
    while (start > 0 && at - start < localMax && inLocal.test(text[start - 1] as string))
      start -= 1;
    let end = at + 1;
    while (end < text.length && end - at <= domainMax && inDomain.test(text[end] as string))
      end += 1;
    while (end > at + 1 && /[.-]/.test(text[end - 1] as string)) end -= 1;
    const domain = text.slice(at + 1, end);
    if (start < at && domain.indexOf('.') > 0) found.push({ kind: 'email', start, end });
  }
  return found;
}

/** Digits that stand together, with the places between which they stand. */
interface DigitGroup {
  readonly start: number;
  readonly end: number;
  readonly digits: string;
}

const cardDigits = { min: 13, max: 19 };
/** Digits in groups, one space or hyphen between two of them. */
const digitRun = /\d+(?:[ -]\d+)*/g;

function findCards(text: string): Found[] {
  const found: Found[] = [];
  for (const run of text.matchAll(digitRun)) {
    const groups = groupsOf(run[0], run.index);
    for (let first = 0; first < groups.length; ) {
      const last = lastOfCard(groups, first);
      if (last !== null) {
        const [{ start }, { end }] = [groups[first] as DigitGroup, groups[last] as DigitGroup];
        found.push({ kind: 'card', start, end });
      }
      first = (last ?? first) + 1;
    }
  }
  return found;
}

function groupsOf(run: string, at: number): DigitGroup[] {
  return Array.from(run.matchAll(/\d+/g), ({ 0: digits, index }) => ({
    digits,
    start: at + index,
    end: at + index + digits.length,
  }));
}

/** The last group of the longest card number that begins with a group; null where none does. */
function lastOfCard(groups: readonly DigitGroup[], first: number): number | null {
  let digits = '';
  let last: number | null = null;
  for (let i = first; i < groups.length; i++) {
    digits += (groups[i] as DigitGroup).digits.slice(0, cardDigits.max + 1);
    if (digits.length > cardDigits.max) break;
    if (digits.length >= cardDigits.min && /^[2-6]/.test(digits) && hasLuhn(digits)) last = i;
  }
  return last;
}

/** Whether the last digit is the check digit of the others (ISO/IEC 7812). */
function hasLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0 && /[1-9]/.test(digits);
}

/** Characters of an IBAN, the shortest and the longest of the registry. */
const ibanLength = { min: 15, max: 34 };
const ibanStart = /(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}/g;

function findIbans(text: string): Found[] {
  const found: Found[] = [];
  for (const { index } of text.matchAll(ibanStart)) {
    const end = endOfIban(text, index);
    if (end !== null) found.push({ kind: 'iban', start: index, end });
  }
  return found;
}

/** The end of the longest IBAN from here on, in one piece or in groups with a space between them; null where there is none. */
function endOfIban(text: string, start: number): number | null {
  let code = '';
  let end: number | null = null;
  for (let at = start; at < text.length && code.length < ibanLength.max; at++) {
    const character = text[at] as string;
    if (character === ' ' && /[A-Za-z0-9]/.test(text[at + 1] ?? '')) continue;
    if (!/[A-Za-z0-9]/.test(character)) break;
    code += character.toUpperCase();
    const isWhole = !/[A-Za-z0-9]/.test(text[at + 1] ?? '');
    if (isWhole && code.length >= ibanLength.min && hasIbanCheck(code)) end = at + 1;
  }
  return end;
}

/** ISO 13616: with the first four characters at the end, and letters as numbers, the rest by 97 is 1. */
function hasIbanCheck(code: string): boolean {
  let rest = 0;
  for (const character of code.slice(4) + code.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

/** Characters of the longest text of an address, with a zone or without. */
const addressMax = 45;
const inAddress = /[0-9A-Fa-f:.]+/g;

function findAddresses(text: string): Found[] {
  const found: Found[] = [];
  for (const { 0: word, index } of text.matchAll(inAddress)) {
    // The end of a sentence is no part of an address.
    const address = word
      .slice(0, addressMax + 2)
      .replace(/[.:]{1,2}$/, (end) => (end === '::' ? end : ''));
    const around = `${text[index - 1] ?? ''}${text[index + word.length] ?? ''}`;
    if (word.length > addressMax + 2 || /[\p{L}\p{N}_]/u.test(around)) continue;
    const [v4 = ''] = /^\d+\.\d+\.\d+\.\d+/.exec(address) ?? [];
    const length = isIPv4(v4) && isPort(address.slice(v4.length)) ? v4.length : address.length;
    const isAddress = length === v4.length ? isIPv4(v4) : isSixth(address);
    if (isAddress) found.push({ kind: 'ip', start: index, end: index + length });
  }
  return found;
}

const isPort = (rest: string) => rest === '' || /^:\d{1,5}$/.test(rest);
/** `::` and `::1` belong to no person. */
const isSixth = (address: string) => address.length > 3 && isIPv6(address);

/** Digits of a telephone number with its country (E.164), and of one without. */
const phoneDigits = { min: 8, max: 15 };
const nationalDigits = { min: 9, max: 12 };
const phoneStart =
  /(?<![\p{L}\p{N}_.+-])(?:\+(?=[1-9(])|(?<!\d[ -])(?:00(?=[1-9(])|\(?0(?=[1-9]))|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\d))/gu;
const betweenDigits = /[ ()./-]/;

function findPhones(text: string): Found[] {
  const found: Found[] = [];
  let from = 0;
  for (const { 0: start, index } of text.matchAll(phoneStart)) {
    if (index < from) continue;
    const end = start.length > 4 ? index + start.length : endOfPhone(text, index, start);
    if (end === null) continue;
    found.push({ kind: 'phone', start: index, end });
    from = end;
  }
  return found;
}

/** The end of a number that begins with `start`, of which three characters at most stand between two digits. */
function endOfPhone(text: string, from: number, start: string): number | null {
  const isInternational = start === '+' || start === '00';
  const { min, max } = isInternational ? phoneDigits : nationalDigits;
  let digits = 0;
  let end = from;
  let hasGap = false;
  for (let at = from + (start === '+' ? 1 : 0), gap = 0; at < text.length && gap <= 3; at++) {
    const character = text[at] as string;
    if (/\d/.test(character)) {
      if (gap > 0 && digits > 0) hasGap = true;
      digits += 1;
      gap = 0;
      end = at + 1;
    } else if (betweenDigits.test(character)) gap += 1;
    else break;
    // One digit more than a number has: this is something else.
    if (digits > max + (start === '00' ? 2 : 0)) return null;
  }
  if (digits < min || /[\p{L}\p{N}_]/u.test(text[end] ?? '')) return null;
  // Without a country a number is taken for one only where it is written as one.
  return isInternational || hasGap || start === '(0' ? end : null;
}
