/**
 * What a server offers to the accounts at it, together: a server may show each account other tools. So no account alone
 * says which tools the skills of all organizations are. A tool is gone when none of the accounts sees it.
 */
import { digestOfTool } from '../compare-tools.ts';
import { type Discovered, RemoteFault, type RemoteTool } from '../remote-kind.ts';

/** Accounts of a look: those that were connected first. They are asked at the same time. */
const accountsMax = 5;

/** `discoverAs` asks with the account of an organization, or with none. Throws RemoteFault. */
export async function discoverWithAccounts(
  organizations: readonly string[],
  discoverAs: (organizationId: string | null) => Promise<Discovered>,
): Promise<Discovered> {
  const looked = await Promise.allSettled(organizations.slice(0, accountsMax).map(discoverAs));
  const seen = looked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  // An account that has to be connected again counts as none.
  const failed = looked.flatMap((one) =>
    one.status === 'rejected' && !asksForAccount(one.reason) ? [one.reason] : [],
  );
  const [first, ...others] = seen;
  if (first === undefined) {
    if (failed.length > 0) throw failed[0];
    return discoverAs(null);
  }
  const isPartial = failed.length > 0 || organizations.length > accountsMax;
  return { ...merged(first, others), isPartial };
}

function merged(first: Discovered, others: readonly Discovered[]): Discovered {
  const tools = [...first.tools];
  const variants: RemoteTool[] = [];
  const names = new Set(tools.map(({ tool }) => tool));
  const digests = new Set(tools.map(digestOfTool));
  const leftOut = new Map(first.leftOut.map((one) => [one.tool, one]));
  for (const { tools: seen, leftOut: unseen } of others) {
    const unknown = seen.filter((tool) => !digests.has(digestOfTool(tool)));
    tools.push(...unknown.filter(({ tool }) => !names.has(tool)));
    variants.push(...unknown.filter(({ tool }) => names.has(tool)));
    for (const tool of unknown) {
      names.add(tool.tool);
      digests.add(digestOfTool(tool));
    }
    for (const one of unseen) leftOut.set(one.tool, leftOut.get(one.tool) ?? one);
  }
  return { ...first, tools, variants, leftOut: [...leftOut.values()] };
}

const asksForAccount = (error: unknown) => error instanceof RemoteFault && error.asksForAccount;
