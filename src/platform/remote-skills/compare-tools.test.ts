import { describe, expect, test } from 'vitest';
import { type Comparison, compareTools, digestOfTool } from './compare-tools.ts';
import type { RemoteKind, RemoteTool, Viewer } from './remote-kind.ts';
import { Usability } from './usability.ts';

const toolOf = (type: string, description = ''): RemoteTool => ({
  ...{ tool: 'echo', description, title: null, output: null, annotations: {} },
  input: { type: 'object', properties: { text: { type } }, required: ['text'] },
  saysIdempotent: false,
});
const usabilityOf = (fault: string | null) =>
  new Usability({ whyUnusable: () => fault } as unknown as RemoteKind, '{}', '{}');
const compared = (offered: Partial<Comparison>) =>
  compareTools({
    ...{ sourceId: 'source', isFirst: false, offers: new Map(), knownViewers: 'all' },
    ...{ known: [], registered: [], now: 1, usability: usabilityOf(null) },
    ...offered,
  });
/** What viewers are shown, by viewer; the empty name is a request without an account. */
const shown = (tools: Record<string, RemoteTool>) => {
  const byDigest = Map.groupBy(Object.entries(tools), ([, tool]) => digestOfTool(tool));
  const viewerOf = (name: string): Viewer => (name === '' ? null : name);
  const offers = [...byDigest].map(([digest, shownTo]) => ({
    digest,
    tool: shownTo[0]?.[1] as RemoteTool,
    viewers: shownTo.map(([name]) => viewerOf(name)),
  }));
  return new Map([['echo', offers]]);
};
const accepted = (await compared({ isFirst: true, offers: shown({ '': toolOf('string') }) })).added;
const activated = (rows: typeof accepted) =>
  rows.map((row) => ({ ...row, state: 'active' as const, activated_at: 1 }));

test('a tool of a first import is accepted, and one that has changed waits', async () => {
  expect(accepted).toMatchObject([{ version: 'v1.0', state: 'active', organizations: null }]);
  const { changed, added } = await compared({
    ...{ known: accepted, offers: shown({ '': toolOf('integer') }) },
  });
  expect(changed).toMatchObject([{ version: 'v1.0', state: 'withdrawn' }]);
  expect(added).toMatchObject([{ version: 'v1.1', state: 'quarantined' }]);
});

test('a tool that was not shown is gone only where the service was asked', async () => {
  expect((await compared({ known: accepted, knownViewers: new Set() })).changed).toEqual([]);
  expect((await compared({ known: accepted })).changed).toMatchObject([{ state: 'withdrawn' }]);
});

test('a version whose calls fail for what is set is withdrawn until they do not', async () => {
  const offers = shown({ '': toolOf('string') });
  const reason = 'The credentials are for another address';
  const usability = usabilityOf(reason);
  const { changed } = await compared({ known: accepted, offers, usability });
  expect(changed).toMatchObject([{ state: 'withdrawn', reason }]);
  const known = accepted.map((row) => ({ ...row, state: 'withdrawn' as const }));
  expect((await compared({ known, offers })).changed).toMatchObject([
    { state: 'active', reason: null },
  ]);
});

test('a version is numbered after those that the registry has had', async () => {
  const registered = [{ skill_name: 'echo', version: 'v1.4' }];
  const { added } = await compared({ registered, offers: shown({ '': toolOf('string') }) });
  expect(added).toMatchObject([{ version: 'v1.5' }]);
});

describe('what accounts are shown', async () => {
  const knownViewers = new Set<Viewer>([null, 'acme', 'globex']);
  const ofAcme = await compared({
    isFirst: true,
    knownViewers,
    offers: shown({ acme: toolOf('string') }),
  });
  const known = activated(ofAcme.added);

  test('is in quarantine at the first look too, each definition with its organizations', async () => {
    expect(ofAcme.added).toMatchObject([{ state: 'quarantined', organizations: '["acme"]' }]);
    const offers = shown({
      ...{ acme: toolOf('string'), globex: toolOf('string', 'Otherwise.') },
      initech: toolOf('string'),
    });
    const { added } = await compared({ isFirst: true, knownViewers, offers });
    expect(added.map(({ version, organizations }) => ({ version, organizations }))).toEqual([
      { version: 'v1.0', organizations: '["acme","initech"]' },
      { version: 'v1.1', organizations: '["globex"]' },
    ]);
    const again = await compared({
      known: added,
      knownViewers: new Set([...knownViewers, 'initech']),
      offers,
    });
    expect(again).toMatchObject({ added: [], removed: [], changed: [] });
  });

  test('makes an accepted version that of another organization only if it is shown exactly that', async () => {
    const same = shown({ acme: toolOf('string'), globex: toolOf('string') });
    expect((await compared({ known, knownViewers, offers: same })).changed).toMatchObject([
      { version: 'v1.0', state: 'active', organizations: '["acme","globex"]' },
    ]);
    const otherwise = shown({ acme: toolOf('string'), globex: toolOf('string', 'Otherwise.') });
    const { changed, added } = await compared({ known, knownViewers, offers: otherwise });
    expect(changed).toEqual([]);
    expect(added).toMatchObject([{ version: 'v1.1', organizations: '["globex"]' }]);
  });

  test('leaves a version to the organization whose account is shown a compatible definition', async () => {
    const offers = shown({ acme: toolOf('string', 'Reworded.'), globex: toolOf('integer') });
    const both = known.map((row) => ({ ...row, organizations: '["acme","globex"]' }));
    const { changed } = await compared({ known: both, knownViewers, offers });
    expect(changed).toMatchObject([
      {
        ...{ state: 'active', organizations: '["acme"]' },
        reason: expect.stringContaining('still takes what this version takes'),
      },
    ]);
  });

  test('stays that of an account that was not asked, and is withdrawn once no account is shown it', async () => {
    const offers = shown({ globex: toolOf('integer') });
    expect((await compared({ known, knownViewers: new Set(['globex']), offers })).changed).toEqual(
      [],
    );
    const { changed } = await compared({ known, knownViewers, offers });
    expect(changed).toMatchObject([{ state: 'withdrawn', organizations: '["acme"]' }]);
  });

  test('of a source without known viewers is kept only by those that are shown exactly it', async () => {
    const offers = shown({ acme: toolOf('string'), globex: toolOf('string', 'Otherwise.') });
    const { changed } = await compared({ known: accepted, knownViewers, offers });
    expect(changed).toMatchObject([{ state: 'active', organizations: '["acme"]' }]);
  });

  test('waits in at most 2,500 versions, of which an organization has no more than its share', async () => {
    const many = (organization: string) =>
      Array.from({ length: 2_000 }, (_, i) => {
        const tool = { ...toolOf('string'), tool: `${organization}-${i}` };
        return [
          tool.tool,
          [{ tool, digest: digestOfTool(tool), viewers: [organization] }],
        ] as const;
      });
    const { added, leftOut } = await compared({ knownViewers, offers: new Map(many('acme')) });
    expect([added.length, leftOut.length]).toEqual([1_250, 750]);
    const offers = new Map([...many('acme'), ...many('globex')]);
    const next = await compared({ knownViewers, known: added, offers });
    expect(next.added.every(({ organizations }) => organizations === '["globex"]')).toBe(true);
    expect(next.added).toHaveLength(625);
  });
});

test('others have a turn between two comparisons, each of which is made once', async () => {
  const rows = (['null', 'boolean', 'integer'] as const).map((type, i) => {
    const tool = toolOf(type, 'Compared once.');
    const [row] = activated(accepted);
    if (row === undefined) throw new Error('nothing was accepted');
    const definition = JSON.stringify({ ...JSON.parse(row.definition), input: tool.input });
    return { ...row, version: `v1.${i}`, digest: digestOfTool(tool), definition };
  });
  const viewers: Viewer[] = [null];
  const offered = ['array', 'object'].map((type) => {
    const tool = toolOf(type, 'Compared once.');
    return { tool, digest: digestOfTool(tool), viewers };
  });
  const turnsOf = async () => {
    let turns = 0;
    let isDone = false;
    const counting = (async () => {
      while (!isDone) {
        await new Promise(setImmediate);
        turns += 1;
      }
    })();
    const found = await compared({ known: rows, offers: new Map([['echo', offered]]) });
    isDone = true;
    await counting;
    return { turns, found };
  };

  const first = await turnsOf();
  const second = await turnsOf();

  expect(first.found.changed.map(({ state }) => state)).toEqual(rows.map(() => 'withdrawn'));
  expect(second.found.changed).toEqual(first.found.changed);
  // Beside those for the tool and for each of its new versions.
  expect(first.turns - second.turns).toBe(rows.length * offered.length);
});
