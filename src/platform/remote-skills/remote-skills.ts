/**
 * Remote sources: services whose tools are skills. An operator adds and changes a source. A refresh makes versions of its
 * skills; a version that differs from the accepted one stays in quarantine until an operator activates it.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { recordRemoteSkills } from '../../core/skills/remote-skills.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import { organizationsOfSource, requireOrganizations } from './organizations.ts';
import { refreshSource } from './refresh.ts';
import { sealSecrets } from './secrets.ts';
import {
  countSources,
  deleteSource,
  findSourceNamed,
  insertSource,
  listSources,
  type SourceRow,
  updateSource,
} from './sources.store.ts';
import { categoryOf, type RemoteSkills, registerVersions } from './state.ts';
import { Usability } from './usability.ts';
import {
  countVersions,
  deleteVersions,
  findVersion,
  listVersions,
  updateVersion,
} from './versions.store.ts';

/** Sources of one kind. */
const sourcesMax = 200;

/** What an operator sets for a source; the form is that of its kind. */
export interface SourceFields {
  readonly settings: Json;
  readonly secrets: Json;
  /** The organizations that the skills belong to; `["*"]` for all. Undefined: see `requireOrganizations`. */
  readonly organizations: readonly string[] | undefined;
  /** Why it may have credentials, as the end of a sentence; null where it has none. */
  readonly mayHaveCredentials: string | null;
  /** The text that describes the source; undefined keeps the stored one. */
  readonly document?: string | null | undefined;
}

/** Adds a source and refreshes it. Throws `409 conflict` for a name that is taken. */
export async function addSource(
  remote: RemoteSkills,
  kind: string,
  name: string,
  fields: SourceFields,
): Promise<SourceRow> {
  const { database, clock, cipher, skills } = remote;
  const organizations = requireOrganizations(fields);
  const category = categoryOf({ kind, name });
  const isTaken = skills
    .listAll()
    .some((one) => one.category === category && one.isActive && one.remoteSourceId === null);
  if (isTaken) {
    throw new PlatformError('conflict', `There are skills of the category ${category} already`);
  }
  if ((await countSources(database.read, kind)) >= sourcesMax) {
    throw new PlatformError(
      'conflict',
      `There are ${sourcesMax} of them already: remove one first`,
    );
  }
  const now = clock.now();
  const id = newId();
  const row = {
    id,
    kind,
    name,
    settings: JSON.stringify(fields.settings),
    secrets: sealSecrets(cipher, { id }, fields.secrets),
    organizations: JSON.stringify(organizations),
    document: fields.document ?? null,
    about: '{}',
    status: 'new' as const,
    fault: null,
    fault_at: null,
    refreshed_at: null,
    created_at: now,
    updated_at: now,
  };
  if (!(await database.write((tx) => insertSource(tx, row)))) {
    throw new PlatformError('conflict', `The name ${name} is taken`);
  }
  return refreshSource(remote, id);
}

/** Throws `404` for an unknown one. */
export async function loadSource({ database }: RemoteSkills, kind: string, name: string) {
  const row = await findSourceNamed(database.read, kind, name);
  if (row === undefined) throw notFound('Source');
  return row;
}

/** A page of the sources, each with the number of its versions by state. */
export async function listSourcesWithCounts(
  { database }: RemoteSkills,
  kind: string,
  page: PageAsked,
) {
  const { sources, total } = await listSources(database.read, kind, page);
  const counts = await countVersions(
    database.read,
    sources.map(({ id }) => id),
  );
  const ofSource = Map.groupBy(counts, ({ source_id }) => source_id);
  return { sources: sources.map((source) => ({ source, counts: ofSource.get(source.id) })), total };
}

/** Throws `404` for an unknown one. */
export async function loadVersion(
  { database }: RemoteSkills,
  source: SourceRow,
  { skillName, version }: Pick<ReadVersion, 'skillName' | 'version'>,
) {
  const row = await findVersion(database.read, source.id, skillName, version);
  if (row === undefined) throw notFound('Version');
  return row;
}

/** Replaces the settings of a source and refreshes it. */
export async function replaceSource(
  remote: RemoteSkills,
  { id }: SourceRow,
  fields: SourceFields,
): Promise<SourceRow> {
  const { database, clock, cipher, kinds, skills } = remote;
  const { settings, secrets, document } = fields;
  const row = await database.write(async (tx) => {
    const before = await updateSource(tx, id, { updated_at: clock.now() });
    if (before === undefined) return undefined;
    const organizations = requireOrganizations(fields, organizationsOfSource(before));
    const changed = await updateSource(tx, id, {
      settings: JSON.stringify(settings),
      secrets: sealSecrets(cipher, { id }, secrets),
      organizations: JSON.stringify(organizations),
      ...(document !== undefined && { document }),
      updated_at: clock.now(),
    });
    if (changed === undefined) return undefined;
    // The new settings apply even if the service is unavailable.
    await withdrawUnusable(remote, tx, changed);
    await registerVersions(tx, clock, changed);
    return changed;
  });
  if (row === undefined) throw notFound('Source');
  await skills.refresh();
  await kinds.get(row.kind)?.close(id);
  // Wait for a refresh under way, because it uses the old settings.
  await remote.refreshes.underWay.get(id)?.catch(() => undefined);
  return refreshSource(remote, id);
}

/** Withdraws the versions whose calls would fail with the new settings. The next refresh may withdraw more. */
async function withdrawUnusable(
  remote: RemoteSkills,
  tx: Transaction,
  source: SourceRow,
): Promise<void> {
  const usability = new Usability(remote.kinds.get(source.kind), source.settings, source.about);
  for (const row of await listVersions(tx, source.id)) {
    const reason = row.state === 'active' ? usability.faultOf(row) : null;
    if (reason === null) continue;
    const updated_at = remote.clock.now();
    await updateVersion(tx, row, { state: 'withdrawn', reason, updated_at });
  }
}

/** A version in quarantine, with the digest that was read. */
export interface ReadVersion {
  readonly skillName: string;
  readonly version: string;
  readonly digest: string;
}

/**
 * Accepts a version in quarantine. A tool that was changed since it was read is refused with `409 conflict`. Or rejects
 * it, until the tool changes again or an operator activates it after all.
 */
export async function decideVersion(
  remote: RemoteSkills,
  source: SourceRow,
  { skillName, version, digest }: ReadVersion,
  decision: 'active' | 'rejected',
): Promise<void> {
  const { database, clock, skills } = remote;
  await database.write(async (tx) => {
    const now = clock.now();
    const locked = await updateSource(tx, source.id, { updated_at: now });
    const row = await findVersion(tx, source.id, skillName, version);
    if (locked === undefined || row === undefined) throw notFound('Version');
    const conflict = (why: string) =>
      new PlatformError('conflict', `${skillName} ${version} ${why}`.trim());
    if (row.digest !== digest) throw conflict('has been changed since: read it again');
    if (row.state === decision) return;
    if (row.state === 'withdrawn') throw conflict(`is withdrawn. ${row.reason ?? ''}`);
    if (row.state === 'active') throw conflict('is active already');
    const usability = new Usability(remote.kinds.get(locked.kind), locked.settings, locked.about);
    const why = decision === 'active' ? usability.faultOf(row) : null;
    if (why !== null) throw conflict(`cannot be called. ${why}`);
    const activated_at = decision === 'active' ? now : null;
    await updateVersion(tx, row, { state: decision, activated_at, updated_at: now });
    await registerVersions(tx, clock, locked);
  });
  await skills.refresh();
}

/** Removes a source; its skills become inactive, and jobs of theirs fail. */
export async function removeSource(
  { database, clock, skills, kinds, refreshes }: RemoteSkills,
  source: SourceRow,
): Promise<void> {
  clearTimeout(refreshes.scheduled.get(source.id));
  refreshes.scheduled.delete(source.id);
  const owner = { id: source.id, category: categoryOf(source) };
  await database.write(async (tx) => {
    await deleteVersions(tx, source.id);
    await deleteSource(tx, source.id);
    await recordRemoteSkills(tx, clock, owner, []);
  });
  refreshes.endedAt.delete(source.id);
  await kinds.get(source.kind)?.close(source.id);
  await skills.refresh();
}

/** Ends what is kept open for sources. */
export async function closeSources({ kinds, refreshes }: RemoteSkills): Promise<void> {
  for (const timer of refreshes.scheduled.values()) clearTimeout(timer);
  await Promise.all([...kinds.values()].map((kind) => kind.close()));
}
