/**
 * Operations of OpenAPI documents as skills. The HTTP client is loaded at the first refresh or call; documents are read in
 * a sandboxed process, so a platform without any pays nothing.
 */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Json } from '../../../kernel/json.ts';
import { lazily } from '../../../kernel/lazy.ts';
import type { RemoteKind, RemoteSource } from '../remote-kind.ts';
import type { ListedOperations } from './read-document.ts';
import { type OpenapiSettings, whyOtherOrigin } from './settings.ts';

export interface OpenapiKindDeps {
  readonly allowed: AllowList;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
}

export interface OpenapiKind extends RemoteKind {
  /** The operations of a document, to choose from. Throws RemoteFault. */
  operationsOf(source: RemoteSource, signal: AbortSignal): Promise<ListedOperations>;
}

export function createOpenapiKind(deps: OpenapiKindDeps): OpenapiKind {
  let isOpen = false;
  const client = lazily(async () =>
    (await import('./openapi-client.ts')).createOpenapiClient(deps),
  );
  const open = () => {
    isOpen = true;
    return client();
  };
  return {
    kind: 'api',
    // A document does not say how the service is now, so nothing is gained by reading it before a call.
    checkEveryMs: null,
    areOutputsChecked: false,
    whyUnusable: ({ settings, about }, request) =>
      whyOtherOrigin(
        settings as unknown as OpenapiSettings,
        about,
        String((request as Json)['baseUrl']),
      ),
    operationsOf: async (...asked) => (await open()).operationsOf(...asked),
    discover: async (...asked) => (await open()).discover(...asked),
    call: async (...asked) => (await open()).call(...asked),
    async close(sourceId) {
      if (isOpen) await (await client()).close(sourceId);
    },
  };
}
