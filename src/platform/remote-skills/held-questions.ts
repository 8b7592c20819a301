/**
 * Limits the questions during which services keep their calls open. Each occupies a loaded run, a connection and perhaps
 * a process until a person answers. An organization may hold at most half of what the others leave free.
 */
import { mayTake } from './fair-share.ts';

/** Questions of one source, and of all. */
const sourceMax = 100;
const processMax = 400;

export class HeldQuestions {
  readonly #counts = new Map<string, number>();

  /** Takes a place; returns the function that releases it, or the reason why there is none. */
  hold(sourceId: string, organizationId: string): (() => void) | string {
    const own = JSON.stringify([organizationId]);
    const ownOfSource = JSON.stringify([organizationId, sourceId]);
    const ofSource = this.#count(ownOfSource);
    if (!mayTake({ own: ofSource, all: this.#count(sourceId), max: sourceMax })) {
      return `${ofSource} calls of it wait for a person already`;
    }
    if (!mayTake({ own: this.#count(own), all: this.#count(''), max: processMax })) {
      return `${this.#count(own)} calls wait for a person already`;
    }
    const names = ['', sourceId, own, ownOfSource];
    for (const name of names) this.#add(name, 1);
    return () => {
      for (const name of names) this.#add(name, -1);
    };
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  #add(name: string, n: 1 | -1): void {
    const sum = this.#count(name) + n;
    if (sum > 0) this.#counts.set(name, sum);
    else this.#counts.delete(name);
  }
}
