/** A client of a job's server-sent events that keeps what it has received, and holds it to its documentation. */
import { JobEventSchema } from '../../src/core/jobs/job-events.schemas.ts';
import { compileSchema, issuesText } from '../../src/kernel/json-schema.ts';
import { waitFor } from './wait-for.ts';

export interface ReceivedEvent {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into data of many shapes
  readonly data: any;
}

export interface Follower {
  readonly status: number;
  readonly headers: Headers;
  readonly events: readonly ReceivedEvent[];
  /** Waits for an event that passes. */
  event(passes: (event: ReceivedEvent) => boolean, describe: string): Promise<ReceivedEvent>;
  /** Resolves with all events when the server has ended the stream. */
  readonly ended: Promise<readonly ReceivedEvent[]>;
  /** Goes away. */
  leave(): void;
}

/** Follows the stream at `url`. */
export async function follow(url: string, headers: Record<string, string>): Promise<Follower> {
  const leaving = new AbortController();
  const response = await fetch(url, { headers, signal: leaving.signal });
  const events: ReceivedEvent[] = [];
  const ended = read(response, events);
  // A client that disconnects does not read the end.
  ended.catch(() => {});
  return {
    status: response.status,
    headers: response.headers,
    events,
    event: (passes, describe) => waitFor(() => events.find(passes), { describe }),
    ended,
    leave: () => leaving.abort(),
  };
}

const documented = compileSchema({ ...JobEventSchema });

async function read(response: Response, events: ReceivedEvent[]): Promise<ReceivedEvent[]> {
  let text = '';
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() as string;
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event === null) continue;
      const issues = documented(event);
      if (issues !== null) throw new Error(`${block} is not as documented: ${issuesText(issues)}`);
      events.push(event);
    }
  }
  return events;
}

/** An event; null for a comment. */
function parseEvent(block: string): ReceivedEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2));
  }
  if (fields.size === 0) return null;
  return {
    id: fields.get('id') ?? '',
    event: fields.get('event') ?? '',
    data: JSON.parse(fields.get('data') ?? 'null'),
  };
}
