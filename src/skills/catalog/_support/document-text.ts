/** What every kind of document is turned into. */

import { cut, oneLine } from './clean-text.ts';

/** What a document says of itself; absent where it does not. */
export interface Metadata {
  readonly author?: string;
  readonly subject?: string;
  readonly keywords?: string;
  readonly language?: string;
  /** ISO 8601, as is `modified_at`. */
  readonly created_at?: string;
  readonly modified_at?: string;
}

export interface DocumentText {
  readonly text: string;
  readonly pages?: number;
  readonly title?: string;
  readonly metadata: Metadata;
}

const factLengthMax = 2_000;

/** The title as a field; none when there is none. */
export function titled(title: unknown): { readonly title?: string } {
  const text = fact(title);
  return text === '' ? {} : { title: text };
}

/** The facts that are there, as clean texts. */
export function metadataOf(facts: { readonly [Name in keyof Metadata]: unknown }): Metadata {
  return Object.fromEntries(
    Object.entries(facts)
      .map(([name, value]) => [name, fact(value)])
      .filter(([, value]) => value !== ''),
  );
}

/** A point in time as ISO 8601; undefined where it is none. */
export function isoDate(text: string | undefined): string | undefined {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

function fact(value: unknown): string {
  return cut(oneLine(value), factLengthMax);
}
