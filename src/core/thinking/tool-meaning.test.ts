import { expect, test } from 'vitest';
import type { Embedder } from '../embeddings/embedder.ts';
import type { Owning } from '../embeddings/request.ts';
import { ToolMeaning } from './tool-meaning.ts';

/** A sixteenth of what is kept. */
const vector = () => new Float32Array(1_000_000).fill(1);

/** Searches of organizations among tools, by their numbers; how many vectors each search has made. */
async function searches(
  ...asked: readonly (readonly [organizationId: string, from: number, to: number])[]
) {
  const made: number[] = [];
  const embedder = {
    model: 'test',
    question: async () => vector(),
    texts: async (_owning: Owning, texts: readonly string[]) => {
      made[made.length - 1] = texts.length;
      return texts.map(vector);
    },
  } as unknown as Embedder;
  const meaning = new ToolMeaning();
  for (const [organizationId, from, to] of asked) {
    const names = Array.from({ length: to - from }, (_, i) => `tool-${from + i}`);
    const tools = names.map((name) => ({ name, text: name }));
    made.push(0);
    const found = await meaning.nearest(embedder, { organizationId, agentId: 'agent' }, tools, 'a');
    expect(found.length).toBeGreaterThan(0);
  }
  return made;
}

test('the vectors that no search of an organization has used for the longest are dropped first', async () => {
  expect(
    await searches(
      ['busy', 0, 8],
      ['busy', 8, 16],
      ['busy', 0, 8],
      ['busy', 16, 20],
      ['busy', 0, 8],
      ['busy', 12, 20],
      ['busy', 8, 12],
    ),
  ).toEqual([8, 8, 0, 4, 0, 0, 4]);
});

test('an organization with many tools drops its own vectors, not those of others', async () => {
  expect(
    await searches(
      ['small', 0, 4],
      ['large', 0, 14],
      ['large', 14, 28],
      ['small', 0, 4],
      ['other', 0, 6],
      ['small', 0, 4],
      ['other', 0, 6],
    ),
  ).toEqual([4, 14, 14, 0, 6, 0, 0]);
});

test('no organization is given the vectors that another one has paid for', async () => {
  expect(await searches(['one', 0, 4], ['two', 0, 4], ['one', 0, 4])).toEqual([4, 4, 0]);
});
