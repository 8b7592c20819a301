import { expect, test } from 'vitest';
import { type Discovered, RemoteFault, type RemoteTool } from '../remote-kind.ts';
import { discoverWithAccounts } from './discover-with-accounts.ts';

const toolOf = (tool: string, description = ''): RemoteTool => ({
  ...{ tool, description, title: null, input: {}, output: null, annotations: {} },
  saysIdempotent: false,
});
const seenBy: Record<string, readonly RemoteTool[]> = {
  acme: [toolOf('echo'), toolOf('own')],
  globex: [toolOf('echo', 'Otherwise.'), toolOf('theirs')],
};
const discoverAs = async (organization: string | null): Promise<Discovered> => {
  if (organization === 'away') throw new RemoteFault('away');
  if (organization === 'expired') throw new RemoteFault('expired', { asksForAccount: true });
  return { tools: seenBy[organization ?? ''] ?? [], leftOut: [], about: {} };
};
const names = ({ tools }: Discovered) => tools.map(({ tool }) => tool);

test('a tool is offered where any account sees it, by each of its definitions', async () => {
  const found = await discoverWithAccounts(['acme', 'globex'], discoverAs);
  expect(names(found)).toEqual(['echo', 'own', 'theirs']);
  expect(found).toMatchObject({ isPartial: false, variants: [{ description: 'Otherwise.' }] });
});

test('what is found is partial where an account could not be asked', async () => {
  expect(await discoverWithAccounts(['away', 'acme'], discoverAs)).toMatchObject({
    isPartial: true,
  });
  const many = Array.from({ length: 51 }, () => 'acme');
  expect((await discoverWithAccounts(many, discoverAs)).isPartial).toBe(true);
  expect((await discoverWithAccounts(['expired', 'acme'], discoverAs)).isPartial).toBe(false);
});

test('without a usable account the server is asked without one, or the fault is told', async () => {
  expect(names(await discoverWithAccounts(['expired'], discoverAs))).toEqual([]);
  const fault = discoverWithAccounts(['away'], discoverAs);
  await expect(fault).rejects.toMatchObject({ message: 'away', isOfAccount: true });
});

test('accounts beyond the fifth are asked once they are connected, then in turns; what they saw is kept', async () => {
  const asked: (string | null)[] = [];
  const organizations = Array.from({ length: 12 }, (_, i) => `o${i + 1}`);
  const discover = async (organization: string | null): Promise<Discovered> => {
    asked.push(organization);
    const own = organization === 'o7' ? [toolOf('of-seven')] : [];
    return { tools: [toolOf('echo'), ...own], leftOut: [], about: {} };
  };
  const seen = new Map();
  const look = async () => {
    asked.length = 0;
    const found = await discoverWithAccounts(organizations, discover, seen);
    return { names: names(found), isPartial: found.isPartial, others: asked.slice(5) };
  };
  const all = { names: ['echo', 'of-seven'], isPartial: false, others: organizations.slice(5) };
  expect(await look()).toEqual(all);
  const some = { ...all, isPartial: true };
  expect(await look()).toEqual({ ...some, others: ['o6', 'o7', 'o8', 'o9', 'o10'] });
  expect(await look()).toEqual({ ...some, others: ['o11', 'o12', 'o6', 'o7', 'o8'] });
  organizations.push('o13');
  expect(await look()).toEqual({ ...some, others: ['o13'] });
});
