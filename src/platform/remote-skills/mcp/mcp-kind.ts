/**
 * Servers of the Model Context Protocol as sources of skills. The SDK and the HTTP client are loaded when the first
 * server is asked, so a platform without any pays nothing.
 */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { lazily } from '../../../kernel/lazy.ts';
import type { RemoteKind } from '../remote-kind.ts';
import type { TokenAccounts } from './account-provider.ts';

/** After this time a call refreshes its source first, so that a changed tool is found. */
const checkEveryMs = 60_000;

export interface McpKindDeps {
  readonly allowed: AllowList;
  readonly version: string;
  readonly accounts: TokenAccounts;
  /** A server says that its tools have changed. */
  onToolsChanged(sourceId: string): void;
}

export function createMcpKind(deps: McpKindDeps): RemoteKind {
  let opened: Promise<unknown> | undefined;
  const client = lazily(async () => (await import('./mcp-client.ts')).createMcpClient(deps));
  const open = () => {
    const one = client();
    opened = one;
    return one;
  };
  return {
    kind: 'mcp',
    checkEveryMs,
    areOutputsChecked: true,
    discover: async (...asked) => (await open()).discover(...asked),
    call: async (...asked) => (await open()).call(...asked),
    async close(sourceId) {
      if (opened !== undefined) await (await client()).close(sourceId);
    },
  };
}
