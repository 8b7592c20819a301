/** The common result for every kind of document. */

import { cut, oneLine } from './clean-text.ts';
import type { Static } from './schemas.ts';

/** The schema of a document's metadata; fields that it does not state are absent. */
export const metadata = {
  type: 'object',
  additionalProperties: false,
  description: 'What the document says of itself.',
  properties: {
    author: { type: 'string', description: 'Who wrote it.' },
    subject: { type: 'string', description: 'Its subject or summary.' },
    keywords: { type: 'string', description: 'Its keywords as one text.' },
    language: { type: 'string', description: 'Its language tag.' },
    created_at: { type: 'string', description: 'When it was made, ISO 8601.' },
    modified_at: { type: 'string', description: 'When it was last changed, ISO 8601.' },
  },
} as const;
type Metadata = Static<typeof metadata>;

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
