/**
 * Discovers the tools of a server with several accounts and merges the results, because a server may show different tools
 * to each account. A tool is gone when no account sees it.
 */
import { digestOfTool } from '../compare-tools.ts';
import { type Discovered, RemoteFault, type RemoteTool } from '../remote-kind.ts';

/** Accounts that each refresh asks with: those that were connected first. */
const accountsMax = 5;
/** Further accounts that refreshes ask with in turns. */
const othersMax = 45;
/** Tools of all accounts together. */
const toolsMax = 2_500;

/** By further account: the tools that it saw last; the least recently asked account first. */
export type SeenByOthers = Map<string, readonly RemoteTool[]>;

/** `discoverAs` asks with the account of an organization, or with none. Throws RemoteFault. */
export async function discoverWithAccounts(
  organizations: readonly string[],
  discoverAs: (organizationId: string | null) => Promise<Discovered>,
  seenByOthers: SeenByOthers = new Map(),
): Promise<Discovered> {
  const first = await askAll(organizations.slice(0, accountsMax), discoverAs);
  const others = organizations.slice(accountsMax, accountsMax + othersMax);
  for (const one of seenByOthers.keys()) if (!others.includes(one)) seenByOthers.delete(one);
  const due = dueOf(others, seenByOthers);
  const further: Asked[] = [];
  for (let i = 0; i < due.length; i += accountsMax) {
    further.push(...(await askAll(due.slice(i, i + accountsMax), discoverAs)));
  }
  const found = [...first, ...further].flatMap(({ seen }) => seen ?? []);
  // An account that has to be connected again does not count.
  const failed = [...first, ...further].find(({ fault }) => fault && !asksForAccount(fault));
  const [one, ...more] = found;
  if (one === undefined) {
    if (failed !== undefined) throw ofAccount(failed.fault);
    return discoverAs(null);
  }
  const remembered = [...seenByOthers].flatMap(([organization, tools]) =>
    due.includes(organization) ? [] : [{ tools, leftOut: [], about: {} }],
  );
  remember(first, further, seenByOthers);
  const isPartial = failed !== undefined || organizations.length > first.length + due.length;
  const all = merged(one, [...more, ...remembered]);
  return { ...all, isPartial: isPartial || all.isPartial === true };
}

/** The tools that an account saw, or its fault. */
interface Asked {
  readonly organization: string;
  readonly seen?: Discovered;
  readonly fault?: unknown;
}

/** Asks with several accounts at the same time. */
async function askAll(
  organizations: readonly string[],
  discoverAs: (organizationId: string) => Promise<Discovered>,
): Promise<Asked[]> {
  const answers = await Promise.allSettled(organizations.map(discoverAs));
  return answers.map((one, i) => {
    const organization = organizations[i] ?? '';
    return one.status === 'fulfilled'
      ? { organization, seen: one.value }
      : { organization, fault: one.reason };
  });
}

/** The further accounts to ask next: those never asked before, then the least recently asked. */
function dueOf(others: readonly string[], seenByOthers: SeenByOthers): readonly string[] {
  const unasked = others.filter((one) => !seenByOthers.has(one));
  return unasked.length > 0 ? unasked : [...seenByOthers.keys()].slice(0, accountsMax);
}

/** Keeps what others saw beyond the first ones, until they are asked again. */
function remember(
  first: readonly Asked[],
  further: readonly Asked[],
  seenByOthers: SeenByOthers,
): void {
  const known = new Set(first.flatMap(({ seen }) => seen?.tools.map(digestOfTool) ?? []));
  for (const { organization, seen } of further) {
    seenByOthers.delete(organization);
    if (seen === undefined) continue;
    const own = seen.tools.filter((tool) => !known.has(digestOfTool(tool)));
    seenByOthers.set(organization, own);
    for (const tool of own) known.add(digestOfTool(tool));
  }
}

/** The fault of an account is that of its organization. */
function ofAccount(fault: unknown): unknown {
  if (!(fault instanceof RemoteFault)) return fault;
  const { message, code, retryable, hadNoEffect, retryAfterMs } = fault;
  return new RemoteFault(message, {
    ...{ code, retryable, hadNoEffect, retryAfterMs, isOfAccount: true, cause: fault },
  });
}

function merged(first: Discovered, others: readonly Discovered[]): Discovered {
  const tools = [...first.tools];
  const variants: RemoteTool[] = [];
  const names = new Set(tools.map(({ tool }) => tool));
  const digests = new Set(tools.map(digestOfTool));
  const leftOut = new Map(first.leftOut.map((one) => [one.tool, one]));
  let isPartial = false;
  for (const { tools: seen, leftOut: unseen } of others) {
    const all = seen.filter((tool) => !digests.has(digestOfTool(tool)));
    const unknown = all.slice(0, Math.max(0, toolsMax - digests.size));
    if (unknown.length < all.length) isPartial = true;
    tools.push(...unknown.filter(({ tool }) => !names.has(tool)));
    variants.push(...unknown.filter(({ tool }) => names.has(tool)));
    for (const tool of unknown) {
      names.add(tool.tool);
      digests.add(digestOfTool(tool));
    }
    for (const one of unseen) leftOut.set(one.tool, leftOut.get(one.tool) ?? one);
  }
  return { ...first, tools, variants, isPartial, leftOut: [...leftOut.values()] };
}

const asksForAccount = (error: unknown) => error instanceof RemoteFault && error.asksForAccount;
