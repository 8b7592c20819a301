/** The bytes of files, which are no JSON. */
import type { components } from './generated/schema.ts';
import {
  type CallOptions,
  type RequestsDeps,
  readJson,
  sendOnce,
  userOf,
  whole,
  withRetries,
} from './requests.ts';
import { within } from './retries.ts';

/** The least time for one request that carries bytes, in milliseconds. */
const transferMs = 300_000;

export interface UploadOptions extends CallOptions {
  /** The name of the file; that of a `File`, else `file`, when left out. */
  readonly name?: string | undefined;
  /** Whose file it is: only tasks for the same user may use it. */
  readonly userId?: string;
  /** Days that it is kept after it was given or used last; those of the platform when left out. */
  readonly retentionDays?: number | undefined;
}

export interface FileTransfers {
  /** Keeps a file: `POST /api/files`. A text is kept as UTF-8. Its id names it in `files` of a task. */
  upload(
    data: Blob | Uint8Array | string,
    options?: UploadOptions,
  ): Promise<components['schemas']['File']>;
  /** Reads the bytes of a file: `GET /api/files/{id}/content`. */
  content(id: string, options?: CallOptions): Promise<Uint8Array>;
}

export function fileTransfers(deps: RequestsDeps): FileTransfers {
  return {
    upload(data, options = {}) {
      const { name = (data as { name?: unknown }).name, retentionDays, headers } = options;
      const userId = userOf(options);
      return within(options, async (signal) => {
        const request = {
          method: 'POST',
          path: '/api/files',
          query: { name, retention_days: retentionDays },
          bytes: data instanceof Blob ? data : new Blob([data as string]),
          headers: { ...(userId === undefined ? {} : { 'x-user-id': userId }), ...headers },
          signal,
          // A process takes some uploads at a time, and refuses further ones before their bytes.
          mayBeRefused: true,
        };
        return await withRetries(deps, request, async () => {
          const response = await sendOnce(deps, request, timeoutOf(deps));
          return (await readJson(response)) as components['schemas']['File'];
        });
      });
    },
    content(id, options = {}) {
      if (id === '') throw new TypeError('id must be a text that is not empty');
      return within(options, async (signal) => {
        const path = `/api/files/${encodeURIComponent(id)}/content`;
        const request = {
          method: 'GET',
          path,
          headers: { accept: '*/*', ...options.headers },
          signal,
        };
        return await withRetries(deps, request, async () => {
          const response = await sendOnce(deps, request, timeoutOf(deps));
          return new Uint8Array(await whole(response.arrayBuffer()));
        });
      });
    },
  };
}

const timeoutOf = ({ timeoutMs }: RequestsDeps) =>
  AbortSignal.timeout(Math.max(timeoutMs, transferMs));
