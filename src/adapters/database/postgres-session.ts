/**
 * One transaction on a connection. Statements for whose result no caller waits are sent together with
 * the next one that has a waiting caller; BEGIN goes with the first statements and COMMIT with the
 * last ones. So a transaction costs one round trip for each awaited result, and an empty one none.
 */
import type pg from 'pg';
import { type Answer, runTogether, type Step } from './pipeline.ts';

type Client = Pick<pg.ClientBase, 'query'>;

interface Waiting {
  readonly step: Step;
  /** Left out when no caller waits for the result. */
  readonly asked?: { resolve(answer: Answer): void; reject(error: unknown): void };
}

export interface Session {
  /** Runs a statement; those that are asked for in one turn go together. */
  ask(step: Step): Promise<Answer>;
  /** Runs a statement with the next one that is asked for, at the latest with the commit. */
  tell(step: Step): void;
  /** Commits; rejects unless all statements have succeeded and are durable. */
  commit(): Promise<void>;
  /** Rolls back; rejects when the connection cannot be used any more. */
  rollBack(): Promise<void>;
}

/** Whatever the server's default is: each statement sees what was committed before it (events/outbox.ts). */
const begin = plain('BEGIN ISOLATION LEVEL READ COMMITTED');
const commit = plain('COMMIT');
const rollback = plain('ROLLBACK');

export function openSession(client: Client): Session {
  let waiting: Waiting[] = [{ step: begin }];
  let hasBegun = false;
  let isScheduled = false;
  let underWay: Promise<void> | undefined;
  /** The first error: PostgreSQL refuses every later statement with a less specific one. */
  let failure: Error | undefined;

  function ask(step: Step): Promise<Answer> {
    if (failure !== undefined) return Promise.reject(failure);
    return new Promise((resolve, reject) => {
      waiting.push({ step, asked: { resolve, reject } });
      schedule();
    });
  }

  function schedule(): void {
    if (isScheduled || underWay !== undefined) return;
    isScheduled = true;
    queueMicrotask(() => {
      isScheduled = false;
      underWay = send();
    });
  }

  async function send(): Promise<void> {
    const sent = waiting;
    waiting = [];
    hasBegun = true;
    const { answers, error } = await runTogether(
      client,
      sent.map(({ step }) => step),
    );
    underWay = undefined;
    sent.forEach(({ asked }, i) => {
      const answer = answers[i];
      if (answer === undefined) asked?.reject(error);
      else asked?.resolve(answer);
    });
    if (error !== undefined) {
      failure = error;
      for (const { asked } of waiting.splice(0)) asked?.reject(error);
    } else if (waiting.some(({ asked }) => asked !== undefined)) schedule();
  }

  return {
    ask,
    tell(step) {
      waiting.push({ step });
    },
    async commit() {
      if (failure !== undefined) throw failure;
      if (!hasBegun && waiting.length === 1) return;
      const { command } = await ask(commit);
      if (command !== 'COMMIT') throw new Error(`The transaction ended with ${command}.`);
    },
    async rollBack() {
      while (underWay !== undefined) await underWay;
      waiting = [];
      if (!hasBegun) return;
      const { error } = await runTogether(client, [rollback]);
      if (error !== undefined) throw error;
    },
  };
}

function plain(text: string): Step {
  return { name: text, text, values: [], givesRows: false };
}
