/**
 * Notifies listeners in all processes when an organization's agents are created, changed or deleted. A message may
 * be lost, so correctness must not depend on it.
 */
import type { Bus } from '../../kernel/bus.ts';

/** Receives the organization's id, or null when messages of any organization may have been missed. */
export type AgentListener = (organizationId: string | null) => void;

export interface AgentChanges {
  tell(organizationId: string): void;
  /** Listens until the process ends. */
  listen(listener: AgentListener): void;
}

export function createAgentChanges(bus: Bus | null): AgentChanges {
  const listeners: AgentListener[] = [];
  const notify: AgentListener = (organizationId) => {
    for (const listener of listeners) listener(organizationId);
  };
  return {
    tell(organizationId) {
      notify(organizationId);
      bus?.send('agents', organizationId);
    },
    listen(listener) {
      listeners.push(listener);
      if (listeners.length > 1) return;
      bus?.listen('agents', notify);
      bus?.onMissed(() => notify(null));
    },
  };
}
