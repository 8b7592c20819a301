/** The client for the platform that the options of a command name. */
import { type ApiRequest, type Client, createClient, type Retry } from '@skillwright/client';
import { asSentence } from './errors.ts';
import type { Io } from './io.ts';
import { readTarget, type TargetOptions } from './profile.ts';

/** An outage of this length is shown: shorter ones end before a line about them is read. */
const shownOutageMs = 1_000;

/** A client that ends its requests, and the pauses between them, at Ctrl-C. */
export function connect(io: Io, options: TargetOptions): Client {
  const { interrupted } = io;
  const client = createClient({
    ...readTarget(io, options),
    onRetry: retryNotice(io),
    fetch: (input, init) => {
      const signals = [interrupted, ...(init?.signal ? [init.signal] : [])];
      return io.fetch(input, { ...init, signal: AbortSignal.any(signals) });
    },
  });
  const { request } = client;
  return {
    ...client,
    request: <Answer>(made: ApiRequest) => request<Answer>({ signal: interrupted, ...made }),
  };
}

/** Writes one line for each outage that lasts, so that a command which waits does not look stuck. */
function retryNotice({ stderr }: Io): (retry: Retry) => void {
  let hasShown = false;
  return ({ error, pauseMs, failingForMs }) => {
    if (failingForMs === 0) hasShown = false;
    if (hasShown || failingForMs + pauseMs < shownOutageMs) return;
    hasShown = true;
    stderr.write(`${asSentence(error.message)} Trying again; Ctrl-C ends the command.\n`);
  };
}

/** A path whose values may hold any character. */
export function path(strings: TemplateStringsArray, ...values: readonly string[]): string {
  return String.raw({ raw: strings }, ...values.map(encodeURIComponent));
}

/** The query of a page. */
export interface PageOptions {
  readonly limit: string;
  readonly offset: string;
}

export interface Page<Item> {
  readonly data: readonly Item[];
  readonly total: number;
}

/** A list of the API: as a page, also where the API gives all of it. */
export async function listOf<Item>(
  client: Client,
  request: Pick<ApiRequest, 'path' | 'query'>,
): Promise<Page<Item>> {
  const answer = await client.request<Page<Item> | readonly Item[]>({ method: 'GET', ...request });
  return 'data' in answer ? answer : { data: answer, total: answer.length };
}
