/**
 * Operations of OpenAPI documents as skills. The HTTP client is loaded at the first refresh or call; documents are read in
 * a sandboxed process, so a platform without any pays nothing.
 */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Json } from '../../../kernel/json.ts';
import { Lazy } from '../../../kernel/lazy.ts';
import type { CalledTool, RemoteKind, RemoteSource } from '../remote-kind.ts';
import type { RemoteRun } from '../remote-run.ts';
import type { OpenapiClient } from './openapi-client.ts';
import type { ListedOperations } from './read-document.ts';
import { type OpenapiSettings, whyOtherOrigin } from './settings.ts';

export class OpenapiKind implements RemoteKind {
  readonly kind = 'api';
  /** A document does not say how the service is now, so nothing is gained by reading it before a call. */
  readonly checkEveryMs = null;
  readonly areOutputsChecked = false;
  readonly #client: Lazy<OpenapiClient>;

  constructor(allowed: AllowList, clock: Clock) {
    this.#client = new Lazy(async () => {
      const { OpenapiClient } = await import('./openapi-client.ts');
      return new OpenapiClient(allowed, clock);
    });
  }

  whyUnusable(
    { settings, about }: Pick<RemoteSource, 'settings' | 'about'>,
    request: Json | undefined,
  ): string | null {
    const { baseUrl } = request as Json;
    return whyOtherOrigin(settings as unknown as OpenapiSettings, about, String(baseUrl));
  }

  /** The operations of a document, to choose from. Throws RemoteFault. */
  async operationsOf(source: RemoteSource, signal: AbortSignal): Promise<ListedOperations> {
    return (await this.#client.get()).operationsOf(source, signal);
  }

  async discover(source: RemoteSource, signal: AbortSignal) {
    return (await this.#client.get()).discover(source, signal);
  }

  async call(source: RemoteSource, tool: CalledTool, input: unknown, run: RemoteRun) {
    return (await this.#client.get()).call(source, tool, input, run);
  }

  async close(sourceId?: string): Promise<void> {
    await (await this.#client.getUsed())?.close(sourceId);
  }
}
