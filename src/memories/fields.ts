/** The fields and limits of a memory, for clients and runs. */
import { refuseLong } from '../kernel/long-text.ts';

/** The tag of a memory that was given none (docs/decisions/memories.md). */
export const defaultTag = 'fact';

/** Characters (code points) of a tag and of a query. */
export const tagCharsMax = 200;
export const queryCharsMax = 1_000;

export interface MemoryFields {
  content?: string;
  tag?: string;
  metadata?: Readonly<Record<string, unknown>>;
  /** From then on it is not found. */
  expires_at?: number | null;
}

/**
 * How many bytes content and metadata have. Throws `400 validation_error` for what is longer than it
 * may be; counts bytes, as no schema can.
 */
export function checkBytes({ content = '', metadata = {} }: MemoryFields): number {
  const json = JSON.stringify(metadata);
  refuseLong('content', content);
  refuseLong('metadata', json);
  return Buffer.byteLength(content) + Buffer.byteLength(json);
}
