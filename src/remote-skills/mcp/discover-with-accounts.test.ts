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
  const six = Array.from({ length: 6 }, () => 'acme');
  expect((await discoverWithAccounts(six, discoverAs)).isPartial).toBe(true);
  expect((await discoverWithAccounts(['expired', 'acme'], discoverAs)).isPartial).toBe(false);
});

test('without a usable account the server is asked without one, or the fault is told', async () => {
  expect(names(await discoverWithAccounts(['expired'], discoverAs))).toEqual([]);
  await expect(discoverWithAccounts(['away'], discoverAs)).rejects.toThrow('away');
});
