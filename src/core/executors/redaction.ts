/**
 * Keeps the secrets that a run was given out of everything that it says: each is replaced by `***` before a text
 * is cut and leaves the child. Finds a secret as it is, as JSON and the console write it, as a url and a form encode
 * it, as a number, and the lines of one that has several; a skill that encodes it otherwise can still show it. A run without
 * secrets is not looked at.
 */
import { inspect } from 'node:util';
import { secretCharsMin } from '../skills/settings-rules.ts';
import type { Run } from './child/part.ts';

const replacement = '***';
/** Forms of secrets that are remembered for texts that belong to no run. */
const rememberedMax = 2_000;
/** Characters of a line of a secret that is found alone. */
const lineCharsMin = 8;
/** Characters of a number that is replaced: a shorter one is too likely something else. */
const numberCharsMin = 6;

type Secretive = Pick<Run, 'secrets'>;

/** The secrets of many runs, for texts of which no run is known. The oldest are forgotten. */
export class KnownSecrets {
  readonly #known = new Set<string>();
  #sorted: readonly string[] | undefined;

  add(forms: Iterable<string>): void {
    for (const form of forms) {
      this.#known.delete(form);
      if (this.#known.size >= rememberedMax)
        this.#known.delete(this.#known.values().next().value ?? '');
      this.#known.add(form);
    }
    this.#sorted = undefined;
  }

  /** The longest first. */
  forms(): readonly string[] {
    this.#sorted ??= longestFirst(this.#known);
    return this.#sorted;
  }
}

/** Those of all runs of this child. */
const ofAllRuns = new KnownSecrets();

/** Adds secrets to those of a run. */
export function addSecrets(run: Secretive, secrets: readonly string[]): void {
  if (secrets.length === 0) return;
  const all = new Set(run.secrets);
  for (const form of formsOf(secrets)) all.add(form);
  run.secrets = longestFirst(all);
  ofAllRuns.add(all);
}

/** The text without the secrets of the run. */
export function redacted(run: Secretive, text: string): string {
  return run.secrets === undefined ? text : without(run.secrets, text);
}

/** A JSON value without the secrets of the run, in its texts and its keys. */
export function redactedValue(run: Secretive, value: unknown): unknown {
  return run.secrets === undefined ? value : withoutIn(run.secrets, value);
}

/** JSON text without the secrets of the run. */
export function redactedJson(run: Secretive, json: string): string {
  return run.secrets === undefined
    ? json
    : JSON.stringify(withoutIn(run.secrets, JSON.parse(json)));
}

/** A text of no run, without the secrets of all runs. */
export function redactedStray(text: string): string {
  return without(ofAllRuns.forms(), text);
}

/** A text that comes in pieces, in any of which a secret may begin. */
export class Pieces {
  readonly #forms: () => readonly string[];
  #held = '';

  /** `forms` gives the forms of the secrets so far. */
  constructor(forms: () => readonly string[]) {
    this.#forms = forms;
  }

  /** The piece without secrets. What may be the beginning of one is held back until the next piece. */
  take(piece: string): string {
    const text = without(this.#forms(), this.#held + piece);
    this.#held = text.slice(startOfSecret(this.#forms(), text));
    return text.slice(0, text.length - this.#held.length);
  }

  /** The rest of the text that was held back. */
  rest(): string {
    const rest = this.#held.length < secretCharsMin ? this.#held : replacement;
    this.#held = '';
    return rest;
  }
}

/** Where the longest end of the text begins that is the beginning of a secret; the text's length without one. */
function startOfSecret(forms: readonly string[], text: string): number {
  let start = text.length;
  for (const form of forms) {
    const [first = ''] = form;
    let at = text.indexOf(first, Math.max(0, text.length - form.length + 1));
    while (at !== -1 && at < start) {
      if (form.startsWith(text.slice(at))) start = at;
      else at = text.indexOf(first, at + 1);
    }
  }
  return start;
}

/** Each way in which a skill or a library is likely to write one of the secrets. */
export function formsOf(secrets: readonly string[]): Set<string> {
  const forms = new Set<string>();
  for (const given of secrets) {
    const secret = given.toWellFormed();
    const json = quoted(secret);
    const shown = inspect(secret, { maxStringLength: null, breakLength: Infinity }).slice(1, -1);
    const urls = [
      encodeURIComponent(secret),
      new URLSearchParams({ s: secret }).toString().slice(2),
    ];
    for (const form of [given, secret, json, quoted(json), shown, ...urls]) forms.add(form);
    if (!secret.includes('\n')) continue;
    for (const line of secret.split(/\r?\n/)) if (line.length >= lineCharsMin) forms.add(line);
  }
  return forms;
}

const quoted = (text: string) => JSON.stringify(text).slice(1, -1);

/** One secret may contain another. */
const longestFirst = (forms: Iterable<string>) => [...forms].sort((a, b) => b.length - a.length);

function without(secrets: readonly string[], text: string): string {
  let rest = text;
  for (const secret of secrets) {
    if (rest.includes(secret)) rest = rest.replaceAll(secret, replacement);
  }
  return rest;
}

function isSecret(secrets: readonly string[], value: number): boolean {
  const text = String(value);
  return text.length >= numberCharsMin && secrets.includes(text);
}

function withoutIn(secrets: readonly string[], value: unknown): unknown {
  if (typeof value === 'string') return without(secrets, value);
  if (typeof value === 'number') return isSecret(secrets, value) ? replacement : value;
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((item) => withoutIn(secrets, item));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      without(secrets, key),
      withoutIn(secrets, member),
    ]),
  );
}
