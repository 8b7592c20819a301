/**
 * Notifies clients of changed lists of tools (`subscriptions/listen`). Agents and some skills belong to organizations, so
 * each organization with a subscribed client has its own handler. A notification says that
 * a list has changed, not how; changes within a short time are notified once.
 */
import type { ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  InMemoryServerEventBus,
  type McpServerFactory,
} from '@modelcontextprotocol/server';

/** Subscriptions of an organization in one process; each is one of the event streams of its key. */
const subscriptionsMax = 10_000;
/** How long changes are gathered. */
const gatherMs = 100;

type NodeHandler = ReturnType<typeof toNodeHandler>;

interface Listening {
  readonly handler: ReturnType<typeof createMcpHandler>;
  readonly handle: NodeHandler;
  /** Clients. */
  count: number;
}

export function createSubscriptions(create: McpServerFactory, onerror: (error: Error) => void) {
  const byOrganization = new Map<string, Listening>();
  const isGathering = new Set<string>();
  const tellTools = (organizationId: string) => {
    if (isGathering.has(organizationId)) return;
    isGathering.add(organizationId);
    setTimeout(() => {
      isGathering.delete(organizationId);
      byOrganization.get(organizationId)?.handler.notify.toolsChanged();
    }, gatherMs).unref();
  };
  return {
    handlerOf(organizationId: string): Listening['handle'] {
      const known = byOrganization.get(organizationId);
      if (known !== undefined) return known.handle;
      const bus = new InMemoryServerEventBus();
      const handler = createMcpHandler(create, {
        bus,
        maxSubscriptions: subscriptionsMax,
        onerror,
      });
      const answer = toNodeHandler(handler);
      const handle: NodeHandler = (request, response, body) => {
        listening.count += 1;
        (response as unknown as ServerResponse).once('close', () => {
          listening.count -= 1;
          // Only organizations that listen have one.
          if (listening.count > 0 || byOrganization.get(organizationId) !== listening) return;
          byOrganization.delete(organizationId);
          void handler.close();
        });
        return answer(request, response, body);
      };
      const listening: Listening = { handler, handle, count: 0 };
      byOrganization.set(organizationId, listening);
      return handle;
    },
    /** Null for skills of all organizations. */
    skillsChanged(organizations: ReadonlySet<string> | null) {
      for (const [organizationId, { handler }] of byOrganization) {
        if (organizations !== null && !organizations.has(organizationId)) continue;
        tellTools(organizationId);
        handler.notify.resourcesChanged();
      }
    },
    /** Null for those of any organization. */
    agentsChanged(organizationId: string | null) {
      if (organizationId === null) for (const id of byOrganization.keys()) tellTools(id);
      else if (byOrganization.has(organizationId)) tellTools(organizationId);
    },
    close() {
      for (const { handler } of byOrganization.values()) void handler.close();
    },
  };
}
