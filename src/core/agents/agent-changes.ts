/**
 * Notifies listeners in all processes when an organization's agents are created, changed or deleted. A message may
 * be lost, so correctness must not depend on it.
 */
import type { Bus } from '../../kernel/bus.ts';
import type { Context } from '../context/context.ts';

/** Receives the organization's id, or null when messages of any organization may have been missed. */
export type AgentListener = (organizationId: string | null) => void;

/** The listeners of this process. */
export class AgentChanges {
  readonly #bus: Bus | null;
  readonly #listeners: AgentListener[] = [];

  constructor({ bus }: Context) {
    this.#bus = bus;
  }

  /** Notifies the listeners of all processes. */
  report(organizationId: string): void {
    this.#notify(organizationId);
    this.#bus?.send('agents', organizationId);
  }

  /** Listens until the process ends. */
  listen(listener: AgentListener): void {
    this.#listeners.push(listener);
    if (this.#listeners.length > 1) return;
    this.#bus?.listen('agents', (organizationId) => this.#notify(organizationId));
    this.#bus?.onMissed(() => this.#notify(null));
  }

  #notify(organizationId: string | null): void {
    for (const listener of this.#listeners) listener(organizationId);
  }
}
