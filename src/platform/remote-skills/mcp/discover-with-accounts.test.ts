import { expect, test } from 'vitest';
import { RemoteFault, type RemoteTool, type Viewer } from '../remote-kind.ts';
import { discoverWithAccounts, type Found } from './discover-with-accounts.ts';

const toolOf = (tool: string, description = ''): RemoteTool => ({
  ...{ tool, description, title: null, input: {}, output: null, annotations: {} },
  saysIdempotent: false,
});
const shownTo: Record<string, readonly RemoteTool[]> = {
  acme: [toolOf('echo'), toolOf('own')],
  globex: [toolOf('echo', 'Otherwise.'), toolOf('theirs')],
};
const asksForAccount = new RemoteFault('Connect an account', { asksForAccount: true });
const discoverAs = async (viewer: Viewer): Promise<Found> => {
  if (viewer === null || viewer === 'expired') throw asksForAccount;
  if (viewer === 'away') throw new RemoteFault('away');
  return { tools: shownTo[viewer] ?? [], leftOut: [], about: { of: viewer } };
};

test('what each account is shown is kept apart', async () => {
  const { views } = await discoverWithAccounts(['acme', 'globex'], discoverAs);
  expect(views).toEqual([
    { viewer: 'acme', tools: shownTo['acme'], leftOut: [] },
    { viewer: 'globex', tools: shownTo['globex'], leftOut: [] },
  ]);
});

test('an account that could not be asked, or has to be connected again, keeps what it was shown', async () => {
  const { knownViewers, views } = await discoverWithAccounts(
    ['away', 'expired', 'acme'],
    discoverAs,
  );
  expect(knownViewers).toEqual(new Set([null, 'acme']));
  expect(views).toHaveLength(1);
});

test('what is shown without an account belongs to no account', async () => {
  const open = async (viewer: Viewer) =>
    viewer === null
      ? { tools: [toolOf('echo')], leftOut: [], about: { of: 'all' } }
      : discoverAs(viewer);
  const { views, about, knownViewers } = await discoverWithAccounts(['acme'], open);
  expect(views.map(({ viewer }) => viewer)).toEqual([null, 'acme']);
  expect([about, knownViewers]).toEqual([{ of: 'all' }, new Set([null, 'acme'])]);
});

test('without any view there is the fault: that of an account before that of asking without one', async () => {
  const away = discoverWithAccounts(['expired', 'away'], discoverAs);
  await expect(away).rejects.toMatchObject({ message: 'away', isOfAccount: true });
  await expect(discoverWithAccounts([], discoverAs)).rejects.toBe(asksForAccount);
  await expect(discoverWithAccounts(['expired'], discoverAs)).rejects.toBe(asksForAccount);
});
