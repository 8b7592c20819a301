/** The common result for every kind of document. */

import { cut, oneLine } from './clean-text.ts';

/** The metadata of a document; fields that it does not state are absent. */
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

/** The title as a field; an empty object without a title. */
export function titled(title: unknown): { readonly title?: string } {
  const text = fact(title);
  return text === '' ? {} : { title: text };
}

/** The metadata that is present, as clean texts. */
export function metadataOf(facts: { readonly [Name in keyof Metadata]: unknown }): Metadata {
  return Object.fromEntries(
    Object.entries(facts)
      .map(([name, value]) => [name, fact(value)])
      .filter(([, value]) => value !== ''),
  );
}

/** A point in time as ISO 8601; undefined for an invalid one. */
export function isoDate(text: string | undefined): string | undefined {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

function fact(value: unknown): string {
  return cut(oneLine(value), factLengthMax);
}
