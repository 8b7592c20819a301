/**
 * Extracts the text of documents for models that do not take the documents themselves, with the reader of
 * `documents/extract-text`. Documents are hostile, so each is read in a sandboxed process of its own, two at a time.
 */
import { extname } from 'node:path';
import { startSandbox } from '../../adapters/sandbox/sandbox.ts';
import { Capacity } from './capacity.ts';

/** The module that the sandboxed processes import. */
const program = new URL(
  `../skills/catalog/documents/extract-text${extname(import.meta.url)}`,
  import.meta.url,
).href;
const processesMax = 2;
const memoryMb = 256;
const readingMs = 60_000;
/** Characters of the text of one document, and of a text. */
export const charactersMax = 200_000;
/** Bytes of one document. */
export const documentBytesMax = 20 * 1024 * 1024;

export interface DocumentText {
  readonly text: string;
  readonly pages?: number;
  readonly truncated: boolean;
}

export class DocumentReader {
  readonly #places = new Capacity(processesMax);

  /** The text, or the end of a sentence that says why there is none. */
  async read(bytes: Buffer, signal: AbortSignal): Promise<DocumentText | { fault: string }> {
    const release = await this.#places.take(1, signal);
    try {
      const sandbox = await startSandbox({ module: program, memoryMb });
      const abort = () => void sandbox.stop();
      signal.addEventListener('abort', abort, { once: true });
      try {
        const input = {
          base64: bytes.toString('base64'),
          contentType: '',
          hint: null,
          charactersMax,
        };
        const outcome = await sandbox.ask({ function: 'extract', input }, readingMs);
        if (typeof outcome === 'string') return { fault: 'it takes too much time or memory' };
        return 'error' in outcome ? { fault: outcome.error } : (outcome.value as DocumentText);
      } finally {
        signal.removeEventListener('abort', abort);
        await sandbox.stop();
      }
    } finally {
      release();
    }
  }
}
