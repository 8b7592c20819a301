/** The example skill with a memory, with real executors and the real search. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { manualClock } from '../support/manual-clock.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant } from '../support/tenant.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  const skillsDirs = [join(import.meta.dirname, '../../examples/skills')];
  platform = await startPlatform({ clock, skillsDirs });
});
afterAll(() => platform.stop());

test('of more than twenty customer notes the oldest are forgotten, however long the newest are', async () => {
  const tenant = await newTenant(platform);
  const notes = [
    ...Array.from({ length: 20 }, (_, i) => `old ${i}`),
    ...Array.from({ length: 4 }, (_, i) => `new ${i}, ${'a note of many words '.repeat(10)}`),
  ];

  const told: string[][] = [];
  for (const note of notes) {
    clock.advance(1_000);
    const { body } = await tenant.run('notes/v1.0/customer-notes', { customer: 'Ada', note });
    told.push(body.output.notes);
  }

  const newest = notes.slice(-20).reverse();
  expect(told.at(-1)).toEqual(newest.map((note) => `Ada: ${note}`));
  const { body } = await tenant.get('/api/agents/default/memories?limit=200');
  expect(body.data.map(({ content }: { content: string }) => content)).toEqual(told.at(-1));
});
