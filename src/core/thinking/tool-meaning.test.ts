import { expect, test } from 'vitest';
import type { Embedder } from '../embeddings/embedder.ts';
import type { Owning } from '../embeddings/request.ts';
import { ToolMeaning } from './tool-meaning.ts';

/** A sixteenth of what is kept. */
const vector = () => new Float32Array(1_000_000).fill(1);

test('the vectors that no search has used for the longest are dropped first', async () => {
  const made: number[] = [];
  const embedder = {
    model: 'test',
    question: async () => vector(),
    texts: async (_owning: Owning, texts: readonly string[]) => {
      made.push(texts.length);
      return texts.map(vector);
    },
  } as unknown as Embedder;
  const meaning = new ToolMeaning();
  const search = (organizationId: string, count: number) => {
    const tools = Array.from({ length: count }, (_, i) => ({ name: `tool-${i}`, text: `${i}` }));
    return meaning.nearest(embedder, { organizationId, agentId: 'agent' }, tools, 'a tool');
  };

  for (const [organization, count] of [
    ['busy', 8],
    ['idle', 6],
    ['busy', 8],
    ['new', 4],
    ['busy', 8],
  ] as const) {
    await search(organization, count);
  }

  expect(made).toEqual([8, 6, 4]);
});
