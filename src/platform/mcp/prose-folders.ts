import type { Context } from '../../core/context/context.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import { ShortCache } from '../../kernel/short-cache.ts';

/** How long the folders that a process without skills has found are kept. */
const foldersMs = 30_000;

/**
 * The folders of the skills that this process has loaded from a SKILL.md. A process without the role `worker` has loaded
 * none, and searches its own SKILLS_DIR for them.
 */
export class ProseFolders {
  readonly #executors: ExecutorPool | null;
  readonly #dirs: readonly string[];
  readonly #found: ShortCache<ReadonlyMap<string, string>>;

  constructor({ config, clock }: Context, executors: ExecutorPool | null) {
    this.#executors = executors;
    this.#dirs = config.skillsDir === null ? [] : [config.skillsDir];
    this.#found = new ShortCache(clock, foldersMs, 1);
  }

  /** By `category/version/name`; without skills that have no folder here. */
  async find(): Promise<ReadonlyMap<string, string>> {
    if (this.#executors === null) {
      return this.#found.get('') ?? this.#found.read('', () => this.#search());
    }
    const { definitions } = this.#executors;
    return new Map(definitions.flatMap(({ key, folder }) => (folder ? [[key, folder]] : [])));
  }

  async #search(): Promise<ReadonlyMap<string, string>> {
    const folders = await import('../../core/skills/sources/prose-folders.ts');
    return folders.findProseFolders(this.#dirs);
  }
}
