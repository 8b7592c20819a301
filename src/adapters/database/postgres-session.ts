/**
 * One transaction on a connection. Statements for whose result no caller waits are sent together with
 * the next one that has a waiting caller; BEGIN goes with the first statements and COMMIT with the
 * last ones. So a transaction costs one round trip for each awaited result, and an empty one none.
 */
import { type Answer, type Connection, runTogether, type Step } from './pipeline.ts';
import { translated } from './postgres-errors.ts';
import type { Runner } from './postgres-handle.ts';

interface Waiting {
  readonly step: Step;
  /** Left out when no caller waits for the result. */
  readonly result?: PromiseWithResolvers<Answer>;
}

/** Whatever the server's default is: each statement sees what was committed before it (events/outbox.ts). */
const begin = plain('BEGIN ISOLATION LEVEL READ COMMITTED');
const commit = plain('COMMIT');
const rollback = plain('ROLLBACK');

export class Session implements Runner {
  readonly #connection: Connection;
  #waiting: Waiting[] = [{ step: begin }];
  #hasBegun = false;
  #isScheduled = false;
  #underWay: Promise<void> | undefined;
  /** The first error: PostgreSQL refuses every later statement with a less specific one. */
  #failure: Error | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  run(steps: readonly Step[]): Promise<Answer[]> {
    return translated(Promise.all(steps.map((step) => this.runOne(step))));
  }

  /** Runs statements with the next one that has a waiting caller, at the latest with the commit. */
  async runLater(steps: readonly Step[]): Promise<void> {
    for (const step of steps) this.#waiting.push({ step });
  }

  /** Runs a statement; those of one turn go together. */
  runOne(step: Step): Promise<Answer> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const result = Promise.withResolvers<Answer>();
    this.#waiting.push({ step, result });
    this.#schedule();
    return result.promise;
  }

  /** Commits; rejects unless all statements have succeeded and are durable. */
  async commit(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#hasBegun && this.#waiting.length === 1) return;
    const { command } = await this.runOne(commit);
    if (command !== 'COMMIT') throw new Error(`The transaction ended with ${command}.`);
  }

  /** Rolls back; rejects when the connection cannot be used any more. */
  async rollBack(): Promise<void> {
    while (this.#underWay !== undefined) await this.#underWay;
    this.#waiting = [];
    if (!this.#hasBegun) return;
    const { error } = await runTogether(this.#connection, [rollback]);
    if (error !== undefined) throw error;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#underWay !== undefined) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#underWay = this.#send();
    });
  }

  async #send(): Promise<void> {
    const sent = this.#waiting;
    this.#waiting = [];
    this.#hasBegun = true;
    const steps = sent.map(({ step }) => step);
    const { answers, error } = await runTogether(this.#connection, steps);
    this.#underWay = undefined;
    sent.forEach(({ result }, i) => {
      const answer = answers[i];
      if (answer === undefined) result?.reject(error);
      else result?.resolve(answer);
    });
    if (error !== undefined) {
      this.#failure = error;
      for (const { result } of this.#waiting.splice(0)) result?.reject(error);
    } else if (this.#waiting.some(({ result }) => result !== undefined)) this.#schedule();
  }
}

function plain(text: string): Step {
  return { name: text, text, values: [], givesRows: false };
}
