import type { MetricFamilies } from './metric-families.ts';
import type { Tallies, Tally } from './tally.ts';

/** The responses with one method, route and status. */
interface Responses {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly tally: Tally;
}

/** Counts the responses of the HTTP server. */
export class HttpMetrics {
  readonly #families: MetricFamilies;
  readonly #tallies: Tallies;
  readonly #known = new Map<string, Responses>();
  #last: Responses | undefined;

  constructor(families: MetricFamilies, tallies: Tallies) {
    this.#families = families;
    this.#tallies = tallies;
  }

  /** `route` is the pattern, never the raw path. */
  answered(method: string, route: string, status: number, seconds: number): void {
    let last = this.#last;
    // Most responses are like the last one, and a comparison costs less than the text of a key.
    if (last?.method !== method || last.route !== route || last.status !== status) {
      last = this.#responsesOf(method, route, status);
      this.#last = last;
    }
    last.tally.count();
    this.#families.httpDuration.observe(seconds);
  }

  #responsesOf(method: string, route: string, status: number): Responses {
    const key = `${method} ${route} ${status}`;
    let responses = this.#known.get(key);
    if (responses === undefined) {
      const series = this.#families.httpRequests.labels(method, route, String(status));
      responses = { method, route, status, tally: this.#tallies.of(series) };
      this.#known.set(key, responses);
    }
    return responses;
  }

  refused(code: string): void {
    this.#families.errors.inc({ type: code });
  }
}
