/**
 * Extracts the text of documents for models that do not take the documents themselves, with the reader of
 * `documents/extract-text`. Documents are hostile, so each is read in a sandboxed process of its own, three at a time and two of
 * an organization.
 */
import { extname } from 'node:path';
import { startSandbox } from '../../adapters/sandbox/sandbox.ts';
import { Capacity } from './capacity.ts';
import { stopped, ThinkingError } from './thinking-error.ts';

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

const notRead = () =>
  new ThinkingError('skill_execution_failed', 'A file could not be read right now', true);

export class DocumentReader {
  readonly #places = new Capacity(processesMax);

  /** The text, or why there is none. Rejects with a ThinkingError, to be retried, where the process has not had its chance. */
  async read(
    bytes: Buffer,
    organizationId: string,
    signal: AbortSignal,
  ): Promise<DocumentText | UnreadDocument> {
    const release = await this.#places.take(1, organizationId, signal);
    try {
      const sandbox = await startSandbox({ module: program, memoryMb }).catch(() => {
        throw notRead();
      });
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
        if (signal.aborted) throw stopped();
        if (outcome === 'late' || outcome === 'exhausted') {
          return { fault: 'it takes too much time or memory', isBroken: true };
        }
        if (typeof outcome === 'string') throw notRead();
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
