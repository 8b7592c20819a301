import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { lazily } from '../../../kernel/lazy.ts';
import type { OauthClient } from './oauth-client.ts';

/** The client of authorization servers, loaded at its first use. */
export class LazyOauthClient {
  readonly #load: () => Promise<OauthClient>;
  #isOpen = false;

  /** `operationMs` bounds each operation. */
  constructor(allowed: AllowList, operationMs?: number) {
    this.#load = lazily(async () => {
      const { OauthClient } = await import('./oauth-client.ts');
      return new OauthClient(allowed, operationMs);
    });
  }

  open(): Promise<OauthClient> {
    this.#isOpen = true;
    return this.#load();
  }

  async close(): Promise<void> {
    if (this.#isOpen) await (await this.#load()).close();
  }
}
