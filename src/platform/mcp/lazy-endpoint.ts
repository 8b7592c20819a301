import type { Context } from '../../core/context/context.ts';
import { lazily } from '../../kernel/lazy.ts';
import type { McpEndpoint, McpProcess, McpSlices } from './endpoint.ts';

/**
 * The endpoint, loaded at its first use: the SDK takes 12 MiB and a tenth of a second, which a platform without such
 * clients saves.
 */
export class LazyEndpoint {
  readonly #load: () => Promise<McpEndpoint>;
  /** The address of the platform as clients reach it, if it is set. */
  readonly publicUrl: string | null;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;

  constructor(context: Context, slices: McpSlices, process: McpProcess) {
    this.publicUrl = context.config.publicUrl;
    this.stopping = process.stopping;
    this.#load = lazily(async () => {
      const { McpEndpoint } = await import('./endpoint.ts');
      return new McpEndpoint(context, slices, process);
    });
  }

  open(): Promise<McpEndpoint> {
    return this.#load();
  }
}
