/**
 * Semantic search: the memories whose vectors are nearest to that of a query. Compares the codes of all vectors, then
 * the vectors of the nearest codes exactly, in the same way on both databases.
 */
import type { Database, Handle } from '../../adapters/database/database.ts';
import type { Embedder } from '../embeddings/embedder.ts';
import type { Owning } from '../embeddings/request.ts';
import { CodeCache } from './code-cache.ts';
import { codeOf, similarity, vectorOf } from './codes.ts';
import { findModel } from './embedding-models.store.ts';
import { type OwnerRow, ownerKinds } from './owners.store.ts';
import { type Query, queryOf } from './query.ts';
import type { VectorIndex } from './vector-index.ts';
import {
  hasVectors,
  listTagged,
  nearestCodes,
  type SeenOwners,
  vectorsOf,
} from './vectors.store.ts';

/** Vectors that are compared exactly, and memories in the result. */
const comparedMax = 400;
const foundMax = 100;

/** What is searched. */
export interface SearchScope {
  readonly owners: readonly OwnerRow[];
  readonly now: number;
  readonly tag?: string | undefined;
}

/** A near memory, with its numbers. */
export interface Near {
  readonly seq: number;
  readonly id: string;
}

/** A query with phrases needs their exact words, and a query without words has no meaning to search by. */
const hasMeaning = ({ sought, phrases }: Query) => sought.length > 0 && phrases.length === 0;

/** Semantic search by the model of a process. */
export class Meaning {
  readonly database: Database;
  readonly embedder: Embedder;
  /** The vector index of PostgreSQL; finds nothing elsewhere. */
  readonly index: VectorIndex;
  readonly codes = new CodeCache();

  constructor(database: Database, embedder: Embedder, index: VectorIndex) {
    this.database = database;
    this.embedder = embedder;
    this.index = index;
  }

  /** The memories nearest to the text, nearest first; empty if the text or the memories have no vector. */
  async nearest(owning: Owning, sought: SearchScope, text: string): Promise<readonly Near[]> {
    const { embedder, index, codes } = this;
    const { read } = this.database;
    if (sought.owners.length === 0 || !hasMeaning(queryOf(text))) return [];
    const model = await findModel(read, { model: embedder.model });
    if (model === undefined || model.dimensions === null) return [];
    const seen = seenOf(sought.owners);
    if (!(await hasVectors(read, seen, model.id))) return [];
    const asked = await embedder.question(owning, text);
    if (asked === null || asked.length !== model.dimensions) return [];
    const wanted = { ...sought, model: model.id, dimensions: model.dimensions };
    const indexed =
      sought.tag === undefined
        ? await index.nearest(seen, {
            model: model.id,
            vector: asked,
            most: comparedMax,
            count: sought.owners.reduce((sum, { count }) => sum + count, 0),
          })
        : null;
    const seqs = indexed ?? (await candidates(read, codes, seen, wanted, codeOf(asked)));
    if (seqs.length === 0) return [];
    const { now, tag } = sought;
    const rows = await vectorsOf(read, seen, { seqs, model: model.id, now, tag });
    return rows
      .map(({ seq, id, vector }) => ({
        seq: Number(seq),
        id,
        likeness: similarity(asked, vectorOf(vector)),
      }))
      .filter(({ likeness }) => likeness > 0)
      .sort((a, b) => b.likeness - a.likeness || b.seq - a.seq)
      .slice(0, foundMax);
  }

  /** Drops the codes in memory, for example when a user is erased. */
  clear(): void {
    this.codes.clear();
  }
}

function seenOf(owners: readonly Pick<OwnerRow, 'id' | 'kind'>[]): SeenOwners {
  const [together = [], own = []] = [true, false].map((isTogether) =>
    owners.filter(({ kind }) => (kind === ownerKinds.together) === isTogether).map(({ id }) => id),
  );
  return { own, together };
}

/** The memories with the nearest codes. */
async function candidates(
  read: Handle,
  codes: CodeCache,
  seen: SeenOwners,
  { owners, tag, model, dimensions }: SearchScope & { model: number; dimensions: number },
  code: Uint8Array,
): Promise<readonly number[]> {
  if (read.dialect === 'postgres') {
    return await nearestCodes(read, seen, { model, code, tag, most: comparedMax });
  }
  const tagged = tag === undefined ? null : new Set(await listTagged(read, seen, tag));
  const mayBe = tagged === null ? null : (seq: number) => tagged.has(seq);
  const found: number[] = [];
  for (const owner of owners) {
    const searched = { owner, model, dimensions };
    found.push(...(await codes.nearest(read, searched, code, comparedMax, mayBe)));
  }
  return found;
}
