/**
 * Compares a service's tools with the stored versions of its skills. Pure. A version is a pin: the digest of a tool's
 * name, description and schemas. Promises that a version becomes active only after a person has accepted it, except in
 * the first import, and that an accepted version stays active only while the tool is compatible with its input and
 * output. A tool has at most one version that was not accepted, however often it changes.
 */
import { createHash } from 'node:crypto';
import type { RemoteSkillState } from '../database/tables.ts';
import { canonicalJson } from '../kernel/text.ts';
import { incompatibilities } from '../skills/compatibility.ts';
import { compareVersions } from '../skills/skill-rows.ts';
import { definitionOf, type RemoteDefinition } from './definitions.ts';
import type { RemoteTool } from './remote-kind.ts';
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
  /** Versions with a new state or reason. */
  readonly changed: readonly (Pick<VersionRow, 'skill_name' | 'version' | 'state' | 'reason'> & {
    readonly source_id: string;
  })[];
}

export interface Comparison {
  readonly sourceId: string;
  /** Whether this is the first import of the source, whose tools are accepted. */
  readonly isFirst: boolean;
  /** By the names of their skills. */
  readonly named: ReadonlyMap<string, RemoteTool>;
  /** Other definitions of these tools, which the service gives to other accounts. */
  readonly variants: ReadonlyMap<string, readonly RemoteTool[]>;
  /** Whether the service may offer further tools to other accounts; then a missing tool is not withdrawn. */
  readonly isPartial: boolean;
  readonly known: readonly VersionRow[];
  /** All skill versions that the category ever had, also of removed sources: their names are not used again. */
  readonly registered: readonly Pick<VersionRow, 'skill_name' | 'version'>[];
  readonly now: number;
  /** Why the settings of the source make calls of a version fail; null if they may succeed. */
  readonly whyUnusable: (row: Pick<VersionRow, 'definition'>) => string | null;
  /** The text that shows what differs. */
  readonly differenceOf: (before: RemoteDefinition, after: RemoteDefinition) => string;
}

/** Yields between tools: comparing the schemas of one may take some hundred milliseconds, and a service has hundreds. */
export async function compareTools(compared: Comparison): Promise<Compared> {
  const { named, known } = compared;
  const added: VersionRow[] = [];
  const removed: VersionRow[] = [];
  const changed: Compared['changed'][number][] = [];
  const versions = Map.groupBy(known, ({ skill_name }) => skill_name);
  for (const name of new Set([...named.keys(), ...versions.keys()])) {
    await new Promise(setImmediate);
    const rows = versions.get(name) ?? [];
    const offers = offersOf(compared, name);
    if (offers.length === 0 && compared.isPartial) continue;
    const kept = rows.filter((row) => row.activated_at !== null || offeredAs(row, offers));
    removed.push(...rows.filter((row) => !kept.includes(row)));
    for (const row of kept) {
      const { state, reason } = usableState(compared, row, stateOf(row, offers));
      if (state === row.state && reason === row.reason) continue;
      const { source_id, skill_name, version } = row;
      changed.push({ source_id, skill_name, version, state, reason });
    }
    if (kept.some(isWaiting)) continue;
    const unknown = offers.find(({ digest }) => !kept.some((row) => row.digest === digest));
    if (unknown !== undefined) added.push(newVersion(compared, name, unknown.tool, kept));
  }
  return { added, removed, changed };
}

interface Offer {
  readonly tool: RemoteTool;
  readonly digest: string;
}

/** The definitions of a tool; the first is that of the account which was connected first. */
function offersOf({ named, variants }: Comparison, name: string): Offer[] {
  const tool = named.get(name);
  const tools = tool === undefined ? [] : [tool, ...(variants.get(name) ?? [])];
  return tools.map((one) => ({ tool: one, digest: digestOfTool(one) }));
}

const offeredAs = (row: VersionRow, offers: readonly Offer[]) =>
  offers.some(({ digest }) => digest === row.digest);
const isWaiting = (row: VersionRow) => row.activated_at === null && row.state !== 'rejected';

/** The state of a version, given the definitions of its tool that the source offers now. */
function stateOf(
  row: VersionRow,
  offers: readonly Offer[],
): { state: RemoteSkillState; reason: string | null } {
  const isAccepted = row.activated_at !== null;
  const withdrawn = (reason: string) => ({ state: 'withdrawn' as const, reason });
  if (offers.length === 0) return withdrawn('The service does not offer the tool any more.');
  if (offeredAs(row, offers)) {
    // A rejected version stays rejected until the tool changes again.
    if (row.state === 'rejected') return { state: row.state, reason: row.reason };
    return { state: isAccepted ? 'active' : 'quarantined', reason: null };
  }
  const differences = offers.map(({ tool }) => differenceFrom(row, tool));
  if (differences.includes(undefined)) {
    const reason = 'The service has changed the tool, and still takes what this version takes.';
    return { state: 'active', reason };
  }
  return withdrawn(`The service has changed the tool: ${differences[0]}.`);
}

/** Withdraws a version while the settings of its source make its calls fail. */
function usableState(
  { whyUnusable }: Comparison,
  row: VersionRow,
  { state, reason }: Pick<VersionRow, 'state' | 'reason'>,
): Pick<VersionRow, 'state' | 'reason'> {
  const why = state === 'active' ? whyUnusable(row) : null;
  return why === null ? { state, reason } : { state: 'withdrawn', reason: why };
}

/** The first incompatibility of a tool with a version; undefined if it is compatible. */
function differenceFrom(row: VersionRow, tool: RemoteTool): string | undefined {
  if (row.tool !== tool.tool) return `the tool is named ${tool.tool}`;
  return incompatibilities(schemasOf(definitionIn(row)), schemasOf(definitionOf(tool)))[0];
}

function newVersion(
  { sourceId, isFirst, registered, now, differenceOf }: Comparison,
  name: string,
  tool: RemoteTool,
  rows: readonly VersionRow[],
): VersionRow {
  const [newest] = rows.toSorted((a, b) => compareVersions(b.version, a.version));
  const taken = [...rows, ...registered].filter(({ skill_name }) => skill_name === name);
  const minor = Math.max(-1, ...taken.map(({ version }) => Number(version.split('.')[1]))) + 1;
  const definition = definitionOf(tool);
  return {
    source_id: sourceId,
    skill_name: name,
    version: `v1.${minor}`,
    tool: tool.tool,
    digest: digestOfTool(tool),
    state: isFirst ? 'active' : 'quarantined',
    reason: null,
    definition: JSON.stringify(definition),
    difference: newest === undefined ? null : differenceOf(definitionIn(newest), definition),
    created_at: now,
    updated_at: now,
    activated_at: isFirst ? now : null,
  };
}

export function definitionIn(row: Pick<VersionRow, 'definition'>): RemoteDefinition {
  return JSON.parse(row.definition) as RemoteDefinition;
}

function schemasOf({ input, output }: RemoteDefinition) {
  return { parameters: input, output: output ?? {} };
}
