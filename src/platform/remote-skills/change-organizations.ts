/** Organizations of sources and versions: takes versions from disconnected accounts, and warns of sources of all. */
import { organizationsShown, storedOrganizations } from './organizations.ts';
import { listUnnamed, updateSource } from './sources.store.ts';
import { categoryOf, type RemoteSkills, registerVersions } from './state.ts';
import { listVersions, updateVersion } from './versions.store.ts';

/**
 * Takes the versions that an account was shown from its organization. A version that belongs to no other organization is
 * withdrawn, until an account is shown it again.
 */
export async function forgetAccount(
  { database, clock, skills }: RemoteSkills,
  sourceId: string,
  organizationId: string,
): Promise<void> {
  await database.write(async (tx) => {
    const now = clock.now();
    const source = await updateSource(tx, sourceId, { updated_at: now });
    if (source === undefined) return;
    for (const row of await listVersions(tx, sourceId)) {
      const shown = organizationsShown(row);
      if (shown === null || !shown.includes(organizationId)) continue;
      const others = shown.filter((one) => one !== organizationId);
      const organizations = storedOrganizations(others);
      const isGone = others.length === 0 && row.state === 'active';
      const gone = isGone && { state: 'withdrawn' as const, reason: shownToNobody };
      await updateVersion(tx, row, { organizations, ...gone, updated_at: now });
    }
    await registerVersions(tx, clock, source);
  });
  await skills.refresh();
}

const shownToNobody = 'The account that was shown the tool was disconnected.';

/** Warns of sources of earlier versions, which belong to all organizations until an administrator names some. */
export async function warnOfUnnamed({ database, log }: RemoteSkills): Promise<void> {
  const unnamed = await listUnnamed(database.read, unnamedMax);
  if (unnamed.length === 0) return;
  log.warn(
    { sources: unnamed.map(categoryOf) },
    'these outside sources belong to all organizations, which act with their credentials: name their organizations in the console or with PUT',
  );
}

/** Sources that the warning names. */
const unnamedMax = 50;
