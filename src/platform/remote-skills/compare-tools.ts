/**
 * Compares a service's tools with the stored versions of its skills, and writes nothing. A version is a pin: the digest of a tool's
 * name, description and schemas, with the organizations whose accounts were shown it. Promises that a version becomes
 * active only after a person has accepted it, except in a first import without accounts, and that an accepted version
 * stays active only while the tool is compatible with its input and output. A viewer has at most one version of a tool
 * that was not accepted, however often the tool changes.
 */
import { createHash } from 'node:crypto';
import { incompatibilities } from '../../core/skills/compatibility.ts';
import { compareVersions } from '../../core/skills/skill-rows.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { definitionIn, definitionOf, type RemoteDefinition } from './definitions.ts';
import { differenceOf } from './difference.ts';
import { mayTake } from './fair-share.ts';
import { type Organizations, organizationsShown, storedOrganizations } from './organizations.ts';
import type { Discovered, LeftOutTool, RemoteTool, Viewer } from './remote-kind.ts';
import type { Usability } from './usability.ts';
import type { VersionRow } from './versions.store.ts';

/** SHA-256 over the tool's name, description, schemas and how it is called, hex. */
export function digestOfTool({ tool, description, input, output, request }: RemoteTool): string {
  const called = request === undefined ? {} : { request };
  const pinned = canonicalJson({ name: tool, description, input, output, ...called });
  return createHash('sha256').update(pinned).digest('hex');
}

export interface Compared {
  readonly added: readonly VersionRow[];
  /** Versions that were never accepted and that the service no longer offers. */
  readonly removed: readonly VersionRow[];
  /** Versions with a new state, reason or organizations. */
  readonly changed: readonly Pick<
    VersionRow,
    'source_id' | 'skill_name' | 'version' | 'state' | 'reason' | 'organizations'
  >[];
  /** Tools without a version, because too many versions of their organizations wait. */
  readonly leftOut: readonly LeftOutTool[];
}

/** A definition of a tool that a service offers now, and the viewers that are shown it. */
export interface Offer {
  readonly tool: RemoteTool;
  readonly digest: string;
  readonly viewers: readonly Viewer[];
}

export interface Comparison {
  readonly sourceId: string;
  /** Whether this is the first import of the source: tools that are shown without an account are accepted. */
  readonly isFirst: boolean;
  /** By the names of their skills. */
  readonly offers: ReadonlyMap<string, readonly Offer[]>;
  /** The viewers whose present view is known; the others keep what they were shown before. */
  readonly knownViewers: Discovered['knownViewers'];
  readonly known: readonly VersionRow[];
  /** All skill versions that the category ever had, also of removed sources: their names are not used again. */
  readonly registered: readonly Pick<VersionRow, 'skill_name' | 'version'>[];
  readonly now: number;
  /** Whether the settings of the source let calls of a version succeed. */
  readonly usability: Usability;
}

/** Versions of a source that wait for a decision. */
const waitingMax = 2_500;

/** Others have turns between two comparisons: one may take some hundred milliseconds, and a service has hundreds of tools. */
export async function compareTools(compared: Comparison): Promise<Compared> {
  const { offers, known } = compared;
  const added: VersionRow[] = [];
  const removed: VersionRow[] = [];
  const changed: Compared['changed'][number][] = [];
  const leftOut: LeftOutTool[] = [];
  const versions = Map.groupBy(known, ({ skill_name }) => skill_name);
  const waiting = new WaitingCount();
  const unknown: { name: string; offer: Offer; rows: VersionRow[] }[] = [];
  for (const name of new Set([...offers.keys(), ...versions.keys()])) {
    await new Promise(setImmediate);
    const offered = offers.get(name) ?? [];
    const kept: VersionRow[] = [];
    for (const row of versions.get(name) ?? []) {
      const now = await nowOf(compared, row, offered);
      if (now === undefined) {
        removed.push(row);
        continue;
      }
      kept.push(row);
      const { source_id, skill_name, version, organizations } = row;
      const isSame = now.state === row.state && now.reason === row.reason;
      if (isWaiting(row)) waiting.add(organizationsShown(now));
      if (isSame && now.organizations === organizations) continue;
      changed.push({ source_id, skill_name, version, ...now });
    }
    for (const offer of offered) {
      if (kept.some(({ digest }) => digest === offer.digest)) continue;
      unknown.push({ name, offer, rows: kept });
    }
  }
  for (const { name, offer, rows } of unknown) {
    await new Promise(setImmediate);
    if (waiting.mayAdd(offer.viewers)) {
      const row = await newVersion(compared, name, offer, rows);
      // The next one of the tool is numbered after it.
      rows.push(row);
      added.push(row);
      if (isWaiting(row)) waiting.add(organizationsShown(row));
    } else leftOut.push({ tool: offer.tool.tool, reason: `${offer.tool.tool} ${tooManyWait}` });
  }
  return { added, removed, changed, leftOut };
}

const tooManyWait = `has no version yet: ${waitingMax} versions, or the share of an organization, wait for a decision`;

/** Counts versions that wait, so that the accounts of one organization cannot take the place of all. */
class WaitingCount {
  readonly #own = new Map<string, number>();
  #all = 0;

  add(organizations: Organizations): void {
    this.#all += 1;
    for (const one of organizations ?? []) this.#own.set(one, this.#ownOf(one) + 1);
  }

  mayAdd(viewers: readonly Viewer[]): boolean {
    const all = this.#all;
    return viewers.some(
      (one) => one === null || mayTake({ own: this.#ownOf(one), all, max: waitingMax }),
    );
  }

  #ownOf(organization: string): number {
    return this.#own.get(organization) ?? 0;
  }
}

const isWaiting = (row: VersionRow) => row.activated_at === null && row.state !== 'rejected';

type Now = Pick<VersionRow, 'state' | 'reason' | 'organizations'>;

/** What becomes of a version, given the present definitions of its tool; undefined where it is to be removed. */
async function nowOf(
  compared: Comparison,
  row: VersionRow,
  offered: readonly Offer[],
): Promise<Now | undefined> {
  const isAccepted = row.activated_at !== null;
  const { exact, fitting, keeping } = await holdersOf(compared, row, offered);
  const holders = [...exact, ...fitting, ...keeping];
  if (holders.length === 0) {
    // The organizations are kept: the version is theirs again once their accounts are shown it.
    const { organizations } = row;
    const withdrawn = {
      state: 'withdrawn' as const,
      reason: await whyGone(row, offered),
      organizations,
    };
    return isAccepted ? withdrawn : undefined;
  }
  const organizations = storedOrganizations(
    holders.includes(null) ? null : organizationsIn(holders),
  );
  const before = { state: row.state, reason: row.reason };
  if (exact.length > 0) {
    // A rejected version stays rejected until the tool changes again.
    const state = isAccepted ? 'active' : 'quarantined';
    const now = row.state === 'rejected' ? before : ({ state, reason: null } as const);
    return { ...usableState(compared, row, now), organizations };
  }
  const noted = { state: 'active', reason: hasChanged } as const;
  const now = fitting.length > 0 ? noted : before;
  return { ...usableState(compared, row, now), organizations };
}

const hasChanged = 'The service has changed the tool, and still takes what this version takes.';

const organizationsIn = (viewers: readonly Viewer[]) =>
  viewers.filter((one): one is string => one !== null);

interface Holders {
  /** The viewers that are shown exactly this version. */
  readonly exact: readonly Viewer[];
  /** Those that were shown it before, and are shown a definition that is compatible with it. */
  readonly fitting: readonly Viewer[];
  /** Those that were shown it before, and whose present view is not known. */
  readonly keeping: readonly Viewer[];
}

/**
 * The viewers to which a version belongs. What one account is shown never makes a version that of another: it has to be
 * shown exactly this version itself, or to have been.
 */
async function holdersOf(
  { knownViewers }: Comparison,
  row: VersionRow,
  offered: readonly Offer[],
): Promise<Holders> {
  const shown: readonly Viewer[] = organizationsShown(row) ?? [null];
  const exact = offered.filter(({ digest }) => digest === row.digest).flatMap((one) => one.viewers);
  const keeping = shown.filter((one) => knownViewers !== 'all' && !knownViewers.has(one));
  if (row.activated_at === null) return { exact, fitting: [], keeping };
  const fitting: Viewer[] = [];
  for (const offer of offered) {
    const viewers = offer.viewers.filter((one) => shown.includes(one));
    if (offer.digest === row.digest || viewers.length === 0) continue;
    if ((await differenceFrom(row, offer)) === null) fitting.push(...viewers);
  }
  return { exact, fitting, keeping };
}

async function whyGone(row: VersionRow, [first]: readonly Offer[]): Promise<string> {
  if (first === undefined) return 'The service does not offer the tool any more.';
  const difference = await differenceFrom(row, first);
  if (difference !== null) return `The service has changed the tool: ${difference}.`;
  return 'The service shows the tool to other accounts than those that were shown this version.';
}

/** Withdraws a version while the settings of its source make its calls fail. */
function usableState(
  { usability }: Comparison,
  row: VersionRow,
  { state, reason }: Pick<VersionRow, 'state' | 'reason'>,
): Pick<VersionRow, 'state' | 'reason'> {
  const why = state === 'active' ? usability.faultOf(row) : null;
  return why === null ? { state, reason } : { state: 'withdrawn', reason: why };
}

/**
 * The newest results of comparisons, by the digests of the version and of the tool, which determine them. A tool that
 * differs from an accepted version would be compared with it again at each refresh.
 */
const differences = new Map<string, string | null>();
const differencesMax = 2_000;

/** The first incompatibility of a tool with a version; null if it is compatible. Others have a turn before a comparison. */
async function differenceFrom(row: VersionRow, { tool, digest }: Offer): Promise<string | null> {
  if (row.tool !== tool.tool) return `the tool is named ${tool.tool}`;
  const pair = `${row.digest} ${digest}`;
  const known = differences.get(pair);
  if (known !== undefined) return known;
  await new Promise(setImmediate);
  const [found = null] = incompatibilities(
    schemasOf(definitionIn(row)),
    schemasOf(definitionOf(tool)),
  );
  differences.set(pair, found);
  if (differences.size > differencesMax) {
    differences.delete(differences.keys().next().value as string);
  }
  return found;
}

async function newVersion(
  { sourceId, isFirst, registered, now }: Comparison,
  name: string,
  { tool, digest, viewers }: Offer,
  rows: readonly VersionRow[],
): Promise<VersionRow> {
  const [newest] = rows.toSorted((a, b) => compareVersions(b.version, a.version));
  const taken = [...rows, ...registered].filter(({ skill_name }) => skill_name === name);
  const minor = Math.max(-1, ...taken.map(({ version }) => Number(version.split('.')[1]))) + 1;
  const definition = definitionOf(tool);
  // An account is one of the organization's, and not the administrator's: what it is shown is read before it is used.
  const isAccepted = isFirst && viewers.includes(null);
  return {
    source_id: sourceId,
    skill_name: name,
    version: `v1.${minor}`,
    tool: tool.tool,
    digest,
    state: isAccepted ? 'active' : 'quarantined',
    reason: null,
    definition: JSON.stringify(definition),
    difference: newest === undefined ? null : await differenceOf(definitionIn(newest), definition),
    organizations: storedOrganizations(viewers.includes(null) ? null : organizationsIn(viewers)),
    created_at: now,
    updated_at: now,
    activated_at: isAccepted ? now : null,
  };
}

function schemasOf({ input, output }: RemoteDefinition) {
  return { parameters: input, output: output ?? {} };
}
