/**
 * Keeps the secrets that a run was given out of everything that it says: each is replaced by `***` before a text
 * is cut and leaves the child. Finds a secret as it is, as JSON writes it, and as a url encodes it; a skill that
 * encodes it otherwise can still show it. A run without secrets is not looked at.
 */
import type { Run } from './part.ts';

const replacement = '***';
/** Secrets that the child remembers for texts that belong to no run. */
const rememberedMax = 2_000;

type Secretive = Pick<Run, 'secrets'>;

/** Secrets of all runs of this child, in the order in which they came. */
const remembered = new Set<string>();

/** Adds secrets to those of a run. */
export function addSecrets(run: Secretive, secrets: readonly string[]): void {
  if (secrets.length === 0) return;
  const all = new Set(run.secrets);
  for (const secret of secrets) {
    for (const form of formsOf(secret)) all.add(form);
  }
  // The longest first, because one secret may contain another.
  run.secrets = [...all].sort((a, b) => b.length - a.length);
  for (const form of all) remember(form);
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
  if (remembered.size === 0) return text;
  return without(
    [...remembered].sort((a, b) => b.length - a.length),
    text,
  );
}

function formsOf(secret: string): string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

function remember(form: string): void {
  remembered.delete(form);
  if (remembered.size >= rememberedMax) remembered.delete(remembered.values().next().value ?? '');
  remembered.add(form);
}

function without(secrets: readonly string[], text: string): string {
  let rest = text;
  for (const secret of secrets) {
    if (rest.includes(secret)) rest = rest.replaceAll(secret, replacement);
  }
  return rest;
}

function withoutIn(secrets: readonly string[], value: unknown): unknown {
  if (typeof value === 'string') return without(secrets, value);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((item) => withoutIn(secrets, item));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      without(secrets, key),
      withoutIn(secrets, member),
    ]),
  );
}
