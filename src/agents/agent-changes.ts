/**
 * Tells who listens that the agents of an organization were created, changed or deleted, in all processes. A message may be
 * lost, so a listener keeps nothing that depends on it.
 */
import type { Bus } from '../kernel/bus.ts';

/** Called with null where changes of any organization may have been missed. */
export type AgentListener = (organizationId: string | null) => void;

export interface AgentChanges {
  tell(organizationId: string): void;
  /** Listens until the process ends. */
  listen(listener: AgentListener): void;
}

export function createAgentChanges(bus: Bus | null): AgentChanges {
  const listeners: AgentListener[] = [];
  const hear: AgentListener = (organizationId) => {
    for (const listener of listeners) listener(organizationId);
  };
  return {
    tell(organizationId) {
      hear(organizationId);
      bus?.send('agents', organizationId);
    },
    listen(listener) {
      listeners.push(listener);
      if (listeners.length > 1) return;
      bus?.listen('agents', hear);
      bus?.onMissed(() => hear(null));
    },
  };
}
