/** Yields the slots of runs that only wait, for a model or for the database, to other jobs. */
import { once } from '../../../kernel/once.ts';
import type { JobQueue } from '../queues.ts';
import type { JobRunners } from '../turns/runner.ts';

/** The slots that runs of this process have yielded. */
export class YieldedSlots {
  readonly #runners: JobRunners;
  readonly #max: number;
  #count = 0;

  /** At most `max` slots of all queues together are yielded at a time; a run beyond them keeps its own. */
  constructor(runners: JobRunners, max: number) {
    this.#runners = runners;
    this.#max = max;
  }

  /** Yields a slot of a queue that a job of the organization has; the returned function (resume) takes it back. */
  yieldSlot(queue: JobQueue, organizationId: string): () => void {
    if (this.#count >= this.#max) return () => {};
    const resume = this.#runners.get(queue)?.yieldSlot(organizationId);
    if (resume === undefined) return () => {};
    this.#count += 1;
    return once(() => {
      this.#count -= 1;
      resume();
    });
  }
}

/** The slot of one run, which any of its calls yields while it waits. */
export class RunSlot {
  readonly #slots: YieldedSlots;
  readonly #queue: JobQueue;
  readonly #organizationId: string;
  /** Calls that wait. */
  #waiting = 0;
  #resume = () => {};

  constructor(slots: YieldedSlots, queue: JobQueue, organizationId: string) {
    this.#slots = slots;
    this.#queue = queue;
    this.#organizationId = organizationId;
  }

  /** Yields the slot for a call; the returned function takes it back once no other call waits. */
  yieldSlot(): () => void {
    if (this.#waiting === 0) {
      this.#resume = this.#slots.yieldSlot(this.#queue, this.#organizationId);
    }
    this.#waiting += 1;
    return () => {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#resume();
    };
  }
}
