import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { Lazy } from '../../../kernel/lazy.ts';
import type { OauthClient } from './oauth-client.ts';

/** The client of authorization servers, loaded at its first use. */
export class LazyOauthClient {
  readonly #client: Lazy<OauthClient>;

  /** `operationMs` bounds each operation. */
  constructor(allowed: AllowList, operationMs?: number) {
    this.#client = new Lazy(async () => {
      const { OauthClient } = await import('./oauth-client.ts');
      return new OauthClient(allowed, operationMs);
    });
  }

  open(): Promise<OauthClient> {
    return this.#client.get();
  }

  async close(): Promise<void> {
    await (await this.#client.getUsed())?.close();
  }
}
