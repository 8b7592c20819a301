/**
 * What a look at a service makes of the versions of its skills, pure. A version is a pin: the digest of a tool's
 * name, description and schemas. Promises that no version that a person has not accepted becomes active, but for
 * those of the first import, and that an accepted version goes on only while the tool still takes what the version
 * takes and gives what it gives. A tool has at most one version that was not accepted, however often it changes.
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
  /** Versions that were never accepted, and that the service does not offer any more. */
  readonly removed: readonly VersionRow[];
  /** Versions whose state or reason differs now. */
  readonly changed: readonly (Pick<VersionRow, 'skill_name' | 'version' | 'state' | 'reason'> & {
    readonly source_id: string;
  })[];
}

export interface ToolLook {
  readonly sourceId: string;
  /** Whether the source was never imported: then what it offers is accepted. */
  readonly isFirst: boolean;
  /** By the names of their skills. */
  readonly named: ReadonlyMap<string, RemoteTool>;
  readonly known: readonly VersionRow[];
  readonly now: number;
  /** The text that shows what differs. */
  readonly differenceOf: (before: RemoteDefinition, after: RemoteDefinition) => string;
}

export function compareTools(look: ToolLook): Compared {
  const { named, known } = look;
  const added: VersionRow[] = [];
  const removed: VersionRow[] = [];
  const changed: Compared['changed'][number][] = [];
  const versions = Map.groupBy(known, ({ skill_name }) => skill_name);
  for (const name of new Set([...named.keys(), ...versions.keys()])) {
    const tool = named.get(name);
    const rows = versions.get(name) ?? [];
    const digest = tool && digestOfTool(tool);
    const kept = rows.filter((row) => row.activated_at !== null || row.digest === digest);
    removed.push(...rows.filter((row) => !kept.includes(row)));
    for (const row of kept) {
      const { state, reason } = stateOf(row, tool, digest);
      if (state === row.state && reason === row.reason) continue;
      const { source_id, skill_name, version } = row;
      changed.push({ source_id, skill_name, version, state, reason });
    }
    const isKnown = kept.some((row) => row.digest === digest);
    if (tool !== undefined && !isKnown) added.push(newVersion(look, name, tool, kept));
  }
  return { added, removed, changed };
}

/** What a version is, now that its source offers this tool, or none of that name. */
function stateOf(
  row: VersionRow,
  tool: RemoteTool | undefined,
  digest: string | undefined,
): { state: RemoteSkillState; reason: string | null } {
  const isAccepted = row.activated_at !== null;
  const withdrawn = (reason: string) => ({ state: 'withdrawn' as const, reason });
  if (tool === undefined) return withdrawn('The service does not offer the tool any more.');
  if (row.digest === digest) {
    // A person has read it and does not want it: it stays so until the tool changes again.
    if (row.state === 'rejected') return { state: row.state, reason: row.reason };
    return { state: isAccepted ? 'active' : 'quarantined', reason: null };
  }
  const [difference] =
    row.tool === tool.tool
      ? incompatibilities(schemasOf(definitionIn(row)), schemasOf(definitionOf(tool)))
      : [`the tool is named ${tool.tool}`];
  if (difference === undefined) {
    const reason = 'The service has changed the tool, and still takes what this version takes.';
    return { state: 'active', reason };
  }
  return withdrawn(`The service has changed the tool: ${difference}.`);
}

function newVersion(
  { sourceId, isFirst, now, differenceOf }: ToolLook,
  name: string,
  tool: RemoteTool,
  rows: readonly VersionRow[],
): VersionRow {
  const [newest] = rows.toSorted((a, b) => compareVersions(b.version, a.version));
  const minor = newest === undefined ? 0 : Number(newest.version.split('.')[1]) + 1;
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
