/**
 * Extracts the text of documents for models that do not take the documents themselves, with the reader of
 * `documents/extract-text`. Documents are hostile, so each is read in a sandboxed process of its own, three at a time and two of
 * an organization.
 */
import { extname } from 'node:path';
import { startSandbox } from '../../adapters/sandbox/sandbox.ts';
import { Capacity } from './capacity.ts';

/** The module that the sandboxed processes import. */
const program = new URL(
  `../skills/catalog/documents/extract-text${extname(import.meta.url)}`,
  import.meta.url,
).href;
const processesMax = 3;
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

export interface UnreadDocument {
  /** The end of a sentence. */
  readonly fault: string;
  /** Whether it will never be read. */
  readonly isBroken?: boolean;
}

export class DocumentReader {
  readonly #places = new Capacity(processesMax);

  /** The text, or why there is none. */
  async read(
    bytes: Buffer,
    organizationId: string,
    signal: AbortSignal,
  ): Promise<DocumentText | UnreadDocument> {
    const release = await this.#places.take(1, organizationId, signal);
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
        const isAborted = signal.aborted;
        if (typeof outcome === 'string') {
          return { fault: 'it takes too much time or memory', isBroken: !isAborted };
        }
        return 'error' in outcome
          ? { fault: outcome.error, isBroken: true }
          : (outcome.value as DocumentText);
      } finally {
        signal.removeEventListener('abort', abort);
        await sandbox.stop();
      }
    } finally {
      release();
    }
  }
}
