/**
 * Makes `make` run at the first call only: callers at the same time share one run, and later ones
 * its result. A failure is not kept.
 */
export function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** What is made at its first use, and has to be closed only if it was used. */
export class Lazy<T> {
  readonly #make: () => Promise<T>;
  #isUsed = false;

  constructor(make: () => Promise<T>) {
    this.#make = lazily(make);
  }

  get(): Promise<T> {
    this.#isUsed = true;
    return this.#make();
  }

  /** Undefined if it was never used: what closes it makes nothing. */
  getUsed(): Promise<T> | undefined {
    return this.#isUsed ? this.#make() : undefined;
  }
}
