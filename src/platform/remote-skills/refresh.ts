/**
 * Refresh: reads the tools of a service and compares them with the stored versions, in one transaction with the
 * registry's rows. If the service is unavailable, slow or hostile, the reason is recorded and its skills stay as they are.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { addSecrets, redacted } from '../../core/executors/redaction.ts';
import { listRemoteVersions } from '../../core/skills/remote-skills.ts';
import { aborted } from '../../kernel/aborted.ts';
import { notFound } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { cleanText } from '../../kernel/text.ts';
import { organizationsWithoutAccount } from './accounts/accounts.store.ts';
import { type Compared, compareTools, type Offer } from './compare-tools.ts';
import { type Offers, offersIn } from './offers.ts';
import { organizationsShown } from './organizations.ts';
import {
  type Discovered,
  type LeftOutTool,
  RemoteFault,
  type RemoteKind,
  type RemoteSource,
} from './remote-kind.ts';
import { openSource, secretTextsOf } from './secrets.ts';
import { findDocument, findSource, type SourceRow, updateSource } from './sources.store.ts';
import { categoryOf, type RemoteSkills, registerVersions } from './state.ts';
import { Usability } from './usability.ts';
import { deleteVersion, insertVersions, listVersions, updateVersion } from './versions.store.ts';

/** Milliseconds for all requests of one refresh. */
const refreshMs = 30_000;
const faultCharsMax = 1_000;
/** Left-out tools that are recorded with their reasons. */
const leftOutMax = 100;

/** What a refresh has stored. */
export interface RefreshedSource extends SourceRow {
  /** The message for runs, in place of a fault that only the administrator may see. */
  readonly faultForRuns?: string;
}

const faultForRuns =
  'The service could not be refreshed with the accounts at it; the administrator sees why';

/**
 * Refreshes a source and stores the result or the fault: with the account of `organizationId` too, if it has one.
 * Concurrent calls share one refresh.
 */
export function refreshSource(
  remote: RemoteSkills,
  sourceId: string,
  organizationId: string | null = null,
): Promise<RefreshedSource> {
  const { refreshes, clock } = remote;
  const underWay = refreshes.underWay.get(sourceId);
  if (underWay !== undefined) return underWay;
  const stored = discoverAndStore(remote, sourceId, organizationId).finally(() => {
    refreshes.underWay.delete(sourceId);
    refreshes.endedAt.set(sourceId, clock.monotonic());
  });
  refreshes.underWay.set(sourceId, stored);
  return stored;
}

/** Like `refreshSource`, after one that is under way, which may be without this organization's account. */
export async function refreshSourceFor(
  remote: RemoteSkills,
  sourceId: string,
  organizationId: string,
): Promise<RefreshedSource> {
  for (;;) {
    const underWay = remote.refreshes.underWay.get(sourceId);
    if (underWay === undefined) return refreshSource(remote, sourceId, organizationId);
    await underWay.catch(() => undefined);
  }
}

async function discoverAndStore(
  remote: RemoteSkills,
  sourceId: string,
  organizationId: string | null,
): Promise<RefreshedSource> {
  const { database, kinds, cipher, log, skills } = remote;
  const row = await findSource(database.read, sourceId);
  if (row === undefined) throw notFound('Source');
  const kind = kinds.get(row.kind);
  if (kind === undefined) throw new Error(`There is no kind ${row.kind} of remote skills`);
  const secretive = { secrets: undefined };
  try {
    const source = openSource(cipher, row, await findDocument(database.read, row.id));
    addSecrets(secretive, secretTextsOf(source));
    const discovered = await discoverInTime(kind, source, organizationId);
    const versions = await listVersions(database.read, sourceId);
    const known = new Set(versions.map(({ digest }) => digest));
    const offered = await offersIn(discovered.views, known);
    const stored = await compareAndStore(remote, { row, discovered, offered });
    await skills.refresh();
    log.info({ source: row.name, tools: offered.offers.size }, 'a remote source was refreshed');
    return stored;
  } catch (error) {
    if (!(error instanceof RemoteFault)) throw error;
    const fault = redacted(secretive, error.message);
    log.warn({ source: row.name, fault }, 'a remote source could not be refreshed');
    const stored = await storeFault(remote, row, fault, error.asksForAccount);
    return error.isOfAccount ? { ...stored, faultForRuns } : stored;
  }
}

/** What the service offers. Throws RemoteFault, also where the kind does not end in time. */
async function discoverInTime(
  kind: RemoteKind,
  source: RemoteSource,
  organizationId: string | null,
): Promise<Discovered> {
  const signal = AbortSignal.timeout(refreshMs);
  try {
    return await Promise.race([kind.discover(source, signal, organizationId), aborted(signal)]);
  } catch (error) {
    if (error !== signal.reason) throw error;
    const message = `${source.name} could not be refreshed within ${refreshMs / 1_000} s`;
    throw new RemoteFault(message, { code: 'upstream_unavailable', retryable: true });
  }
}

interface Found {
  readonly row: SourceRow;
  readonly discovered: Discovered;
  readonly offered: Offers;
}

/** Comparisons of one refresh, of which another process changes what they compare with. */
const comparisonsMax = 5;

/** Compares outside the transaction that stores, because comparing strangers' schemas takes time. */
async function compareAndStore(remote: RemoteSkills, found: Found): Promise<SourceRow> {
  for (let i = 0; i < comparisonsMax; i++) {
    const comparison = await compareWithStored(remote, found);
    const stored = await remote.database.write((tx) => store(remote, tx, found, comparison));
    if (stored !== 'changed') return stored;
  }
  throw new RemoteFault('Its skills are being changed by others: refresh it again', {
    retryable: true,
  });
}

/** What differs from the stored versions, and which these were. */
interface StoredComparison {
  readonly compared: Compared;
  readonly basis: string;
  readonly found: Pick<SourceRow, 'settings' | 'about'>;
}

async function compareWithStored(
  remote: RemoteSkills,
  { row, discovered, offered }: Found,
): Promise<StoredComparison> {
  const settings = settingsWith(row, discovered.learned);
  const stored = await listStored(remote.database.read, row, discovered);
  const { refreshedAt, known, registered, disconnected } = stored;
  const { knownViewers } = discovered;
  const kind = remote.kinds.get(row.kind);
  const compared = await compareTools({
    sourceId: row.id,
    isFirst: refreshedAt === null && known.length === 0,
    known,
    registered,
    now: remote.clock.now(),
    offers: offersWithout(offered.offers, disconnected),
    knownViewers: knownViewers === 'all' ? knownViewers : knownViewers.union(disconnected),
    usability: new Usability(kind, settings, JSON.stringify(discovered.about)),
  });
  const about = { ...discovered.about, ...leftOutOf([...offered.leftOut, ...compared.leftOut]) };
  const found = { settings, about: JSON.stringify(about) };
  return { compared, basis: basisOf(stored), found };
}

async function listStored(db: Handle, row: SourceRow, { views }: Discovered) {
  const refreshedAt = (await findSource(db, row.id))?.refreshed_at ?? null;
  const known = await listVersions(db, row.id);
  const viewers = [
    ...views.map(({ viewer }) => viewer),
    ...known.flatMap((version) => organizationsShown(version) ?? []),
  ];
  const organizations = new Set(viewers.filter((viewer) => viewer !== null));
  // Accounts that were disconnected since the discovery began, or earlier without the end of `forgetAccount`.
  const disconnected = await organizationsWithoutAccount(db, row.id, organizations);
  const registered = await listRemoteVersions(db, categoryOf(row));
  return { refreshedAt, known, registered, disconnected };
}

/** The offers without those to disconnected accounts. */
function offersWithout(
  offers: Offers['offers'],
  disconnected: ReadonlySet<string>,
): Offers['offers'] {
  if (disconnected.size === 0) return offers;
  const shownTo = (offer: Offer) => ({
    ...offer,
    viewers: offer.viewers.filter((viewer) => viewer === null || !disconnected.has(viewer)),
  });
  return new Map(
    [...offers].map(([name, all]) => [
      name,
      all.map(shownTo).filter(({ viewers }) => viewers.length > 0),
    ]),
  );
}

/** Equal while a comparison with the stored versions would have the same result. A digest stands for a definition. */
function basisOf({
  refreshedAt,
  known,
  registered,
  disconnected,
}: Awaited<ReturnType<typeof listStored>>): string {
  const versions = known.map((row) => {
    const { skill_name, version, digest, state, reason, organizations, activated_at } = row;
    return JSON.stringify([
      skill_name,
      version,
      digest,
      state,
      reason,
      organizations,
      activated_at,
    ]);
  });
  const names = registered.map(({ skill_name, version }) => `${skill_name} ${version}`);
  return JSON.stringify([
    refreshedAt === null,
    versions.sort(),
    names.sort(),
    [...disconnected].sort(),
  ]);
}

/** Stores the result; `changed` if the stored versions are not those that it was compared with. */
async function store(
  remote: RemoteSkills,
  tx: Transaction,
  { row, discovered }: Found,
  { compared, basis, found }: StoredComparison,
): Promise<SourceRow | 'changed'> {
  const now = remote.clock.now();
  // First, because this update locks the source against refreshes of other processes.
  const locked = await updateSource(tx, row.id, { updated_at: now });
  if (locked === undefined) throw notFound('Source');
  if (haveSettingsChanged(row, locked)) return locked;
  if (basisOf(await listStored(tx, row, discovered)) !== basis) return 'changed';
  const available = { status: 'available', fault: null, fault_at: null } as const;
  const changes = { ...available, ...found, refreshed_at: now };
  const source = (await updateSource(tx, row.id, changes)) ?? locked;
  await storeCompared(tx, compared, now);
  await registerVersions(tx, remote.clock, source);
  return source;
}

function leftOutOf(all: readonly LeftOutTool[]) {
  const leftOut = all
    .slice(0, leftOutMax)
    .map(({ tool, reason }) => ({ tool, reason: shortText(reason) }));
  return { left_out: leftOut, left_out_total: all.length };
}

/** Whether the settings changed during the refresh. Its result is dropped, because the change starts another refresh. */
function haveSettingsChanged(before: SourceRow, now: SourceRow): boolean {
  return (
    now.settings !== before.settings ||
    now.secrets !== before.secrets ||
    now.organizations !== before.organizations
  );
}

/** The settings, with those that the discovery has learned. */
function settingsWith({ settings }: SourceRow, learned: Json | undefined): string {
  if (learned === undefined) return settings;
  return JSON.stringify({ ...(JSON.parse(settings) as Json), ...learned });
}

async function storeCompared(
  tx: Transaction,
  { added, removed, changed }: Compared,
  now: number,
): Promise<void> {
  for (const version of removed) await deleteVersion(tx, version);
  for (const version of changed) {
    const { state, reason, organizations } = version;
    const short = reason === null ? null : shortText(reason);
    await updateVersion(tx, version, { state, reason: short, organizations, updated_at: now });
  }
  await insertVersions(tx, added);
}

async function storeFault(
  { database, clock }: RemoteSkills,
  row: SourceRow,
  fault: string,
  asksForAccount: boolean,
): Promise<SourceRow> {
  const now = clock.now();
  const status = asksForAccount ? ('needs_authorization' as const) : ('failing' as const);
  const changes = { status, fault: shortText(fault), fault_at: now, updated_at: now };
  const stored = await database.write(async (tx) => {
    const locked = await updateSource(tx, row.id, { updated_at: now });
    const isOther = locked === undefined || haveSettingsChanged(row, locked);
    return isOther ? locked : updateSource(tx, row.id, changes);
  });
  if (stored === undefined) throw notFound('Source');
  return stored;
}

const shortText = (text: string) => cleanText(text.slice(0, faultCharsMax));
