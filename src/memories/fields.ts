/** What a memory may hold, whoever hands it in: a client or a run. */
import { invalid } from '../kernel/errors.ts';

/** UTF-8 bytes of the content, and of the metadata as JSON text. */
const bytesMax = 65_536;

/** The tag of a memory that was given none (decisions 8). */
export const defaultTag = 'fact';

export interface MemoryFields {
  content?: string;
  tag?: string;
  metadata?: Readonly<Record<string, unknown>>;
}

/**
 * How many bytes content and metadata have. Throws `400 validation_error` for what is longer than it
 * may be; counts bytes, as no schema can.
 */
export function checkBytes({ content = '', metadata = {} }: MemoryFields): number {
  const contentBytes = Buffer.byteLength(content);
  const metadataBytes = Buffer.byteLength(JSON.stringify(metadata));
  if (contentBytes > bytesMax) throw invalid('content', 'must be at most 64 KiB');
  if (metadataBytes > bytesMax) throw invalid('metadata', 'must be at most 64 KiB');
  return contentBytes + metadataBytes;
}
