/**
 * The activities of a run, as a tree: its requests, the skills that it calls, its requests to models with
 * their tools. A scope is blocked when something is open in it and all of that waits. A run that is blocked
 * can be unloaded, because nothing happens in it until one of its waits ends.
 */
export class WaitScope {
  readonly #onBlocked: () => void;
  readonly #outer: WaitScope | null;
  readonly #root: WaitScope;
  /** What is open in it, and how much of that is blocked. */
  #open = 0;
  #blocked = 0;
  #isBlocked = false;
  #isClosed = false;

  /** The scope of a whole run, or one within another; `onBlocked` is called whenever something changes while all of the run waits. */
  constructor(onBlocked: () => void, outer: WaitScope | null = null) {
    this.#onBlocked = onBlocked;
    this.#outer = outer;
    this.#root = outer === null ? this : outer.#root;
  }

  /** Opens a scope within this one. It is blocked only by what is opened in it. */
  open(): WaitScope {
    return this.#add(false);
  }

  /** Adds something under way that does not wait; the function removes it. */
  work(): () => void {
    const inner = this.#add(false);
    return () => inner.close();
  }

  /** Adds a wait; the function removes it. */
  wait(): () => void {
    const inner = this.#add(true);
    return () => inner.close();
  }

  isBlocked(): boolean {
    return this.#isBlocked;
  }

  /** Removes the scope, with all that is open in it. */
  close(): void {
    const outer = this.#outer;
    if (this.#isClosed || outer === null) return;
    this.#isClosed = true;
    outer.#open -= 1;
    if (this.#isBlocked) outer.#blocked -= 1;
    outer.#update();
    this.#notify();
  }

  #add(isWait: boolean): WaitScope {
    const inner = new WaitScope(this.#onBlocked, this);
    inner.#isBlocked = isWait;
    this.#open += 1;
    if (isWait) this.#blocked += 1;
    this.#update();
    this.#notify();
    return inner;
  }

  #notify(): void {
    if (this.#root.#isBlocked) this.#onBlocked();
  }

  /** Brings `isBlocked` of this scope, and of those around it, up to date. */
  #update(): void {
    const isBlocked = this.#open > 0 && this.#open === this.#blocked;
    if (isBlocked === this.#isBlocked) return;
    this.#isBlocked = isBlocked;
    const outer = this.#outer;
    if (outer === null || this.#isClosed) return;
    outer.#blocked += isBlocked ? 1 : -1;
    outer.#update();
  }
}
