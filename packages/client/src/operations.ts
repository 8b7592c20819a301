/** Methods made of the generated table of operations. */
import type { Api } from './generated/operations.ts';
import { pageOf, pagesOf } from './pages.ts';
import {
  type ApiRequest,
  type CallOptions,
  type Credential,
  type RequestsDeps,
  readJson,
  safeMethods,
  sendOnce,
  withRetries,
} from './requests.ts';
import { randomKey, within } from './retries.ts';

export type { CallOptions };

/** An operation of the API. */
export interface Operation {
  readonly verb: string;
  /** With `{name}` for each argument. */
  readonly path: string;
  readonly credential: Credential;
  /** What the argument after those of the path is. */
  readonly input?: 'body' | 'query';
  /** A list that takes `offset`. */
  readonly isPaged?: boolean;
  /** Takes an idempotency key. */
  readonly isKeyed?: boolean;
  readonly result: 'json' | 'text' | 'nothing' | 'array' | 'page';
}

export type OperationTable = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

type Query = Readonly<Record<string, unknown>>;

interface Call {
  readonly operation: Operation;
  readonly path: string;
  readonly input: unknown;
  readonly options: CallOptions;
}

/** A method for each operation of the table. */
export function createApi(deps: RequestsDeps, table: OperationTable): Api {
  const groups = Object.entries(table).map(([group, operations]) => {
    const methods = Object.entries(operations).map(([name, operation]) => [
      name,
      (...args: unknown[]) => call(deps, callOf(operation, args)),
    ]);
    return [group, Object.fromEntries(methods)];
  });
  return Object.fromEntries(groups) as Api;
}

function callOf(operation: Operation, args: readonly unknown[]): Call {
  const rest = [...args];
  const path = operation.path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = rest.shift();
    // An empty one would make another path.
    if (typeof value !== 'string' || value === '') {
      throw new TypeError(`${name} must be a text that is not empty`);
    }
    return encodeURIComponent(value);
  });
  const input = operation.input === undefined ? undefined : rest.shift();
  const [options = {}] = rest as [CallOptions?];
  return { operation, path, input, options };
}

function call(deps: RequestsDeps, made: Call): unknown {
  const { operation, input, options } = made;
  if (operation.result !== 'array' && operation.result !== 'page') {
    return within(options, async (signal) => {
      const query = operation.input === 'query' ? (input as Query | undefined) : undefined;
      return await answer(deps, made, query, signal);
    });
  }
  const asked = (input ?? {}) as Query;
  return pagesOf((from) =>
    within(options, async (signal) => {
      const query = from === null ? asked : { ...asked, offset: from };
      const request = requestOf(made, query, signal);
      return await withRetries(deps, request, async () => {
        const response = await sendOnce(deps, request);
        const offset = Number(query['offset'] ?? 0);
        const isPaged = operation.isPaged === true;
        return pageOf(await readJson(response), response.headers, { offset, isPaged });
      });
    }),
  );
}

async function answer(
  deps: RequestsDeps,
  made: Call,
  query: Query | undefined,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { result } = made.operation;
  const request = requestOf(made, query, signal);
  return await withRetries(deps, request, async (isRepeated) => {
    try {
      const response = await sendOnce(deps, request);
      return result === 'text' ? await response.text() : await readJson(response);
    } catch (error) {
      // The first of them may have deleted it, and its answer was lost.
      const isGone = isRepeated && result === 'nothing' && isNotFound(error);
      if (isGone) return undefined;
      throw error;
    }
  });
}

function isNotFound(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'not_found';
}

function requestOf(
  { operation, path, input, options }: Call,
  query: Query | undefined,
  signal: AbortSignal | undefined,
): ApiRequest {
  const { verb, credential, isKeyed } = operation;
  const key = isKeyed ? { 'idempotency-key': options.idempotencyKey ?? randomKey() } : {};
  return {
    method: verb,
    path,
    query,
    headers: { ...key, ...options.headers },
    credential,
    signal,
    ...(operation.input === 'body' && input !== undefined && { body: input }),
    // A caller's own header makes no operation take a key.
    isSafe: isKeyed === true || safeMethods.has(verb),
  };
}
