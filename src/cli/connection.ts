/** The client for the platform that the options of a command name. */
import { type ApiRequest, type Client, createClient } from '@skillwright/client';
import type { Io } from './io.ts';
import { readTarget, type TargetOptions } from './profile.ts';

/** A client that ends its requests at Ctrl-C. */
export function connect(io: Io, options: TargetOptions): Client {
  const { interrupted } = io;
  return createClient({
    ...readTarget(io, options),
    fetch: (input, init) => {
      const signals = [interrupted, ...(init?.signal ? [init.signal] : [])];
      return io.fetch(input, { ...init, signal: AbortSignal.any(signals) });
    },
  });
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
