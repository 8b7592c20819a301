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

/** The clients of this process that are notified. */
export class Subscriptions {
  readonly #create: McpServerFactory;
  readonly #onerror: (error: Error) => void;
  readonly #byOrganization = new Map<string, Listening>();
  /** Organizations whose changes are gathered. */
  readonly #gathering = new Set<string>();

  constructor(create: McpServerFactory, onerror: (error: Error) => void) {
    this.#create = create;
    this.#onerror = onerror;
  }

  handlerOf(organizationId: string): NodeHandler {
    const byOrganization = this.#byOrganization;
    const known = byOrganization.get(organizationId);
    if (known !== undefined) return known.handle;
    const handler = createMcpHandler(this.#create, {
      bus: new InMemoryServerEventBus(),
      maxSubscriptions: subscriptionsMax,
      onerror: this.#onerror,
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
  }

  /** Null for skills of all organizations. */
  skillsChanged(organizations: ReadonlySet<string> | null): void {
    for (const [organizationId, { handler }] of this.#byOrganization) {
      if (organizations !== null && !organizations.has(organizationId)) continue;
      this.#notifyOfTools(organizationId);
      handler.notify.resourcesChanged();
    }
  }

  /** Null for those of any organization. */
  agentsChanged(organizationId: string | null): void {
    if (organizationId === null) {
      for (const id of this.#byOrganization.keys()) this.#notifyOfTools(id);
    } else if (this.#byOrganization.has(organizationId)) this.#notifyOfTools(organizationId);
  }

  close(): void {
    for (const { handler } of this.#byOrganization.values()) void handler.close();
  }

  #notifyOfTools(organizationId: string): void {
    if (this.#gathering.has(organizationId)) return;
    this.#gathering.add(organizationId);
    setTimeout(() => {
      this.#gathering.delete(organizationId);
      this.#byOrganization.get(organizationId)?.handler.notify.toolsChanged();
    }, gatherMs).unref();
  }
}
