/**
 * Servers of the Model Context Protocol as sources of skills. The SDK and the HTTP client are loaded at the first request to
 * a server, so a platform without any pays nothing.
 */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { Lazy } from '../../../kernel/lazy.ts';
import type { AccountTokens } from '../accounts/tokens.ts';
import type { CalledTool, RemoteKind, RemoteSource } from '../remote-kind.ts';
import type { RemoteRun } from '../remote-run.ts';
import type { RemoteSkills } from '../state.ts';
import type { McpClient } from './mcp-client.ts';

/** After this time a call refreshes its source first, so that a changed tool is found. */
const checkEveryMs = 60_000;

export class McpKind implements RemoteKind {
  readonly kind = 'mcp';
  readonly checkEveryMs = checkEveryMs;
  readonly areOutputsChecked = true;
  readonly #client: Lazy<McpClient>;

  constructor(allowed: AllowList, version: string, tokens: AccountTokens, remote: RemoteSkills) {
    this.#client = new Lazy(async () => {
      const { McpClient } = await import('./mcp-client.ts');
      return new McpClient(allowed, version, tokens, remote);
    });
  }

  async discover(source: RemoteSource, signal: AbortSignal, organizationId: string | null) {
    return (await this.#client.get()).discover(source, signal, organizationId);
  }

  async call(source: RemoteSource, tool: CalledTool, input: unknown, run: RemoteRun) {
    return (await this.#client.get()).call(source, tool, input, run);
  }

  async close(sourceId?: string): Promise<void> {
    await (await this.#client.getUsed())?.close(sourceId);
  }
}
