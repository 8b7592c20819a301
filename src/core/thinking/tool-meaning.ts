/**
 * Search of tools by meaning, where the platform has an embedding model. The vectors of tools are made at the first search that
 * needs them, within the budget of the agent, and kept in this process. A search takes those that are there in time; the rest
 * is made meanwhile and serves the next one. Without a vector of the query, words alone decide.
 */
import { digestOf } from '../../kernel/digest.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { Embedder } from '../embeddings/embedder.ts';
import { agentKey, type Owning } from '../embeddings/request.ts';
import { similarity } from '../memories/codes.ts';

/** Tools of an agent that have vectors; the others are found by words. */
const toolsMax = 2_000;
/** How long a search waits for the vectors of tools. */
const waitMs = 5_000;
/** Bytes of all vectors that are kept, and of what keeps one. The organization that keeps the most drops what it has not used for the longest. */
const keptBytesMax = 64 * 1024 * 1024;
const entryBytes = 200;
/** Tools that a search finds by their meaning. */
const nearMax = 100;

/** A tool as it is embedded. */
export interface Described {
  readonly name: string;
  readonly text: string;
}

/** What an organization keeps. An account's provider may give other vectors, so none are shared. */
interface Kept {
  /** By digest of model and text, the last used last. Null for a text without one. */
  readonly vectors: Map<string, Float32Array | null>;
  bytes: number;
}

export class ToolMeaning {
  /** By organization. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  /** What is being made, by agent. */
  readonly #making = new Map<string, Promise<void>>();

  /** The names of the tools nearest to a query, nearest first; empty where nothing has a vector. */
  async nearest(
    embedder: Embedder,
    owning: Owning,
    tools: readonly Described[],
    query: string,
  ): Promise<string[]> {
    const searched = tools.slice(0, toolsMax).map(({ name, text }) => ({
      name,
      text,
      key: digestOf(JSON.stringify([embedder.model, text])),
    }));
    const asked = await embedder.question(owning, query);
    if (asked === null) return [];
    await withDeadline(this.#make(embedder, owning, searched), waitMs);
    const vectors = this.#kept.get(owning.organizationId)?.vectors;
    return searched
      .flatMap(({ name, key }) => {
        const vector = vectors?.get(key);
        if (vector == null || vector.length !== asked.length) return [];
        return [{ name, likeness: similarity(asked, vector) }];
      })
      .filter(({ likeness }) => likeness > 0)
      .sort((a, b) => b.likeness - a.likeness)
      .slice(0, nearMax)
      .map(({ name }) => name);
  }

  /** Makes the vectors that are missing; one at a time for an agent, so that no text is paid for twice. */
  #make(embedder: Embedder, owning: Owning, tools: readonly KeyedTool[]): Promise<void> {
    const agent = agentKey(owning);
    const before = this.#making.get(agent);
    if (before !== undefined) return before;
    const missing = tools.filter(({ key }) => !this.#use(owning.organizationId, key));
    if (missing.length === 0) return Promise.resolve();
    const made = this.#makeOf(embedder, owning, missing)
      // The search goes on by words; the embedder has logged why.
      .catch(() => {})
      .finally(() => this.#making.delete(agent));
    this.#making.set(agent, made);
    return made;
  }

  async #makeOf(embedder: Embedder, owning: Owning, missing: readonly KeyedTool[]): Promise<void> {
    const texts = missing.map(({ text }) => text);
    const vectors = await embedder.texts(owning, texts, async () => true);
    for (const [i, { key }] of missing.entries()) {
      const vector = vectors[i];
      if (vector !== undefined) this.#keep(owning.organizationId, key, vector);
    }
  }

  /** Puts what is kept of a text last; returns whether it is kept. */
  #use(organizationId: string, key: string): boolean {
    const vectors = this.#kept.get(organizationId)?.vectors;
    const vector = vectors?.get(key);
    if (vectors === undefined || vector === undefined) return false;
    vectors.delete(key);
    vectors.set(key, vector);
    return true;
  }

  #keep(organizationId: string, key: string, vector: Float32Array | null): void {
    // Another agent of the organization may have made it meanwhile.
    if (this.#use(organizationId, key)) return;
    const kept = this.#kept.get(organizationId) ?? { vectors: new Map(), bytes: 0 };
    this.#kept.set(organizationId, kept);
    kept.vectors.set(key, vector);
    this.#count(kept, bytesOf(vector));
    while (this.#bytes > keptBytesMax) this.#dropOldest();
  }

  /** Drops a vector of the organization that keeps the most, so that none loses its share to another. */
  #dropOldest(): void {
    const [organizationId, kept] = [...this.#kept].reduce((most, one) =>
      one[1].bytes > most[1].bytes ? one : most,
    );
    const [oldest] = kept.vectors;
    if (oldest === undefined) return;
    kept.vectors.delete(oldest[0]);
    this.#count(kept, -bytesOf(oldest[1]));
    if (kept.vectors.size === 0) this.#kept.delete(organizationId);
  }

  #count(kept: Kept, bytes: number): void {
    kept.bytes += bytes;
    this.#bytes += bytes;
  }
}

const bytesOf = (vector: Float32Array | null) => entryBytes + (vector?.byteLength ?? 0);

interface KeyedTool extends Described {
  readonly key: string;
}
