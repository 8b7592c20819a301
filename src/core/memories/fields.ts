/** The fields and limits of a memory, for clients and runs. */
import { refuseLong } from '../../kernel/long-text.ts';

/** The default tag of a memory (docs/decisions/memories.md). */
export const defaultTag = 'fact';

/** Characters (code points) of a tag and of a query. */
export const tagCharsMax = 200;
export const queryCharsMax = 1_000;

export interface MemoryFields {
  content?: string;
  tag?: string;
  metadata?: Readonly<Record<string, unknown>>;
  /** When the memory expires, in milliseconds; null for never. */
  expires_at?: number | null;
}

/**
 * The bytes of content and metadata together. Throws `400 validation_error` if either is too long: a JSON Schema
 * cannot limit bytes.
 */
export function checkBytes({ content = '', metadata = {} }: MemoryFields): number {
  const json = JSON.stringify(metadata);
  refuseLong('content', content);
  refuseLong('metadata', json);
  return Buffer.byteLength(content) + Buffer.byteLength(json);
}
