/**
 * The forms under which a word is indexed and searched, beside the word itself. Strong forms are stems: the
 * same word in another inflection. Weak forms are parts: they connect words that stemmers do not
 * (`allergy` and `allergic`, `Lieferadresse` and `Adresse`, Korean and Arabic words with endings).
 * Pure. A memory's terms are stored, so a new version of a stemmer does not damage existing entries.
 */
import { stemmer as arabic } from '@orama/stemmers/arabic';
import { stemmer as dutch } from '@orama/stemmers/dutch';
import { stemmer as english } from '@orama/stemmers/english';
import { stemmer as french } from '@orama/stemmers/french';
import { stemmer as german } from '@orama/stemmers/german';
import { stemmer as italian } from '@orama/stemmers/italian';
import { stemmer as portuguese } from '@orama/stemmers/portuguese';
import { stemmer as russian } from '@orama/stemmers/russian';
import { stemmer as spanish } from '@orama/stemmers/spanish';
import { stemmer as swedish } from '@orama/stemmers/swedish';
import { stemmer as turkish } from '@orama/stemmers/turkish';
import { arabicRoot, koreanStems } from './endings.ts';
import type { Language } from './languages.ts';
import { fold, type Word } from './words.ts';

const stemmers: Readonly<Record<Language, (word: string) => string>> = {
  en: english,
  de: german,
  fr: french,
  es: spanish,
  it: italian,
  pt: portuguese,
  nl: dutch,
  sv: swedish,
  tr: turkish,
};

/** Languages with compound nouns. */
const compounding: ReadonlySet<Language> = new Set(['de', 'nl', 'sv']);
/** The least letters of a compound, and of its parts. */
const compoundCharsMin = 9;
const partCharsMin = 4;
/** Length of the prefix that related words share. */
const beginningChars = 5;
/** Shorter stems are dropped: they usually come from names that the stemmer misread as inflected words. */
const stemCharsMin = 3;
/** Longer words are names or numbers. */
const stemmedCharsMax = 32;

export interface Forms {
  readonly strong: readonly string[];
  /** Prefixes, pairs of syllables, roots. */
  readonly parts: readonly string[];
  /** Suffixes, which match the last part of a compound. */
  readonly ends: readonly string[];
}

const none: Forms = { strong: [], parts: [], ends: [] };
const latin = /^[\p{Script=Latin}]+$/u;
const cyrillic = /^[\p{Script=Cyrillic}]+$/u;
const arabicLetters = /^[\p{Script=Arabic}]+$/u;
const hangul = /^[\p{Script=Hangul}]+$/u;
const digits = /\p{N}/u;

/** Cache of the forms of recent words: most words of a text are frequent ones. */
const known = new Map<string, Forms>();
const knownMax = 5_000;

/** A function that gives the forms of a word in any of these languages. */
export function formsIn(languages: readonly Language[]): (word: Word) => Forms {
  const key = languages.join('');
  return (word) => {
    const asked = `${key} ${word.raw}`;
    const before = known.get(asked);
    if (before !== undefined) return before;
    const forms = formsOf(word, languages);
    if (known.size === knownMax) known.clear();
    known.set(asked, forms);
    return forms;
  };
}

function formsOf(word: Word, languages: readonly Language[]): Forms {
  const { folded } = word;
  if (folded.length > stemmedCharsMax || digits.test(folded)) return none;
  if (latin.test(folded)) return latinForms(word, languages);
  if (cyrillic.test(folded)) {
    return {
      strong: [fold(russian(word.raw)), russian(folded)],
      parts: beginning(folded),
      ends: [],
    };
  }
  if (arabicLetters.test(folded)) return arabicForms(folded);
  if (hangul.test(folded)) {
    const strong = koreanStems(folded);
    return { strong, parts: pairsOf(folded), ends: [] };
  }
  return { strong: [], parts: beginning(folded), ends: [] };
}

function latinForms({ folded, raw }: Word, languages: readonly Language[]): Forms {
  const plain = plainLatin(folded);
  const accented = raw === folded ? null : raw.replaceAll('i̇', 'i');
  const strong = new Set([plain]);
  let compound: string | null = null;
  for (const language of languages) {
    const stem = plainLatin(stemmers[language](plain));
    strong.add(stem);
    // Some stemmers recognize endings only with accents, which people leave out.
    if (accented !== null) strong.add(plainLatin(fold(stemmers[language](accented))));
    if (compounding.has(language)) compound ??= stem;
  }
  const parts = beginning(plain);
  if (languages.includes('de') && plain.startsWith('ge') && plain.length >= 8) {
    parts.push(...beginning(plain.slice(2)));
  }
  const isLong = compound !== null && plain.length >= compoundCharsMin;
  const stems = [...strong].filter((stem) => stem === plain || stem.length >= stemCharsMin);
  return { strong: stems, parts, ends: isLong ? endsOf(compound ?? plain) : [] };
}

/** Normalizes letters that differ in more than case and accents but that readers take for the same. */
function plainLatin(word: string): string {
  return word.replace(/[ıøæœßłđ]/g, (letter) => plainLetters.get(letter) ?? letter);
}

const plainLetters = new Map([
  ['ı', 'i'],
  ['ø', 'o'],
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['ß', 'ss'],
  ['ł', 'l'],
  ['đ', 'd'],
]);

function arabicForms(folded: string): Forms {
  const root = arabicRoot(folded);
  return { strong: [arabic(folded), ...root.stems], parts: [root.root], ends: [] };
}

function beginning(word: string): string[] {
  return word.length < beginningChars ? [] : [word.slice(0, beginningChars)];
}

function endsOf(stem: string): string[] {
  const ends: string[] = [];
  for (let from = 3; from <= stem.length - partCharsMin; from++) ends.push(stem.slice(from));
  return ends;
}

/** All pairs of adjacent characters. */
export function pairsOf(text: string): string[] {
  const chars = [...text];
  return chars.slice(1).map((char, i) => `${chars[i]}${char}`);
}
