import { expect, test } from 'vitest';
import { type Comparison, compareTools } from './compare-tools.ts';
import type { RemoteTool } from './remote-kind.ts';

const toolOf = (type: string): RemoteTool => ({
  ...{ tool: 'echo', description: '', title: null, output: null, annotations: {} },
  input: { type: 'object', properties: { text: { type } }, required: ['text'] },
  saysIdempotent: false,
});
const compared = (offered: Partial<Comparison>) =>
  compareTools({
    ...{ sourceId: 'source', isFirst: false, named: new Map(), variants: new Map() },
    ...{ isPartial: false, known: [], registered: [], now: 1, differenceOf: () => 'differs' },
    whyUnusable: () => null,
    ...offered,
  });
const accepted = (await compared({ isFirst: true, named: new Map([['echo', toolOf('string')]]) }))
  .added;

test('a version stays active while any account sees the tool as it was', async () => {
  const { changed, added } = await compared({
    ...{ known: accepted, named: new Map([['echo', toolOf('integer')]]) },
    variants: new Map([['echo', [toolOf('string')]]]),
  });
  expect(changed).toEqual([]);
  expect(added).toMatchObject([{ version: 'v1.1', state: 'quarantined' }]);
});

test('a tool that was not seen is gone only where all was seen', async () => {
  expect((await compared({ known: accepted, isPartial: true })).changed).toEqual([]);
  expect((await compared({ known: accepted })).changed).toMatchObject([{ state: 'withdrawn' }]);
});

test('a version whose calls fail for what is set is withdrawn until they do not', async () => {
  const named = new Map([['echo', toolOf('string')]]);
  const whyUnusable = () => 'The credentials are for another address';
  const { changed } = await compared({ known: accepted, named, whyUnusable });
  expect(changed).toMatchObject([{ state: 'withdrawn', reason: whyUnusable() }]);
  const known = accepted.map((row) => ({ ...row, state: 'withdrawn' as const }));
  expect((await compared({ known, named })).changed).toMatchObject([
    { state: 'active', reason: null },
  ]);
});

test('a skill gets at most one version that waits, however many definitions there are', async () => {
  const named = new Map([['echo', toolOf('integer')]]);
  const variants = new Map([['echo', [toolOf('boolean'), toolOf('array')]]]);
  const { added } = await compared({ known: accepted, named, variants });
  expect(added).toHaveLength(1);
  const again = await compared({ known: [...accepted, ...added], named, variants });
  expect([again.added, again.removed]).toEqual([[], []]);
});

test('a version is numbered after those that the registry has had', async () => {
  const registered = [{ skill_name: 'echo', version: 'v1.4' }];
  const { added } = await compared({ registered, named: new Map([['echo', toolOf('string')]]) });
  expect(added).toMatchObject([{ version: 'v1.5' }]);
});
