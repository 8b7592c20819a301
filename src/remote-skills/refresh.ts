/**
 * Refresh: reads the tools of a service and compares them with the stored versions, in one transaction with the
 * registry's rows. If the service is unavailable, slow or hostile, the reason is recorded and its skills stay as they are.
 */
import type { Handle, Transaction } from '../database/database.ts';
import { addSecrets, redacted } from '../executors/redaction.ts';
import { aborted } from '../kernel/aborted.ts';
import { checkBoundedSchema } from '../kernel/bounded-schema.ts';
import { notFound } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import { SchemaError } from '../kernel/schema-rules.ts';
import { cleanText, isCleanText } from '../kernel/text.ts';
import { listRemoteVersions } from '../skills/remote-skills.ts';
import { type Compared, compareTools, digestOfTool } from './compare-tools.ts';
import { shownSchema } from './definitions.ts';
import {
  type Discovered,
  type LeftOutTool,
  RemoteFault,
  type RemoteKind,
  type RemoteSource,
  type RemoteTool,
} from './remote-kind.ts';
import { openSource, secretTextsOf } from './secrets.ts';
import { nameTools } from './skill-names.ts';
import { findDocument, findSource, type SourceRow, updateSource } from './sources.store.ts';
import { categoryOf, type RemoteSkillsState, registerVersions, usabilityOf } from './state.ts';
import { deleteVersion, insertVersions, listVersions, updateVersion } from './versions.store.ts';

/** Milliseconds for all requests of one refresh. */
const refreshMs = 30_000;
const descriptionBytesMax = 16_384;
const faultCharsMax = 1_000;
/** Left-out tools that are recorded with their reasons. */
const leftOutMax = 100;

/** What a refresh has stored. */
export interface RefreshedSource extends SourceRow {
  /** The message for runs, in place of a fault that only the administrator may see. */
  readonly faultForRuns?: string;
}

const faultForRuns =
  'The service could not be looked at with the accounts at it; the administrator sees why';

/** Refreshes a source and stores the result or the fault. Concurrent calls share one refresh. */
export function refresh(state: RemoteSkillsState, sourceId: string): Promise<RefreshedSource> {
  const { refreshes, clock } = state;
  const underWay = refreshes.underWay.get(sourceId);
  if (underWay !== undefined) return underWay;
  const stored = discoverAndStore(state, sourceId).finally(() => {
    refreshes.underWay.delete(sourceId);
    refreshes.endedAt.set(sourceId, clock.monotonic());
  });
  refreshes.underWay.set(sourceId, stored);
  return stored;
}

async function discoverAndStore(
  state: RemoteSkillsState,
  sourceId: string,
): Promise<RefreshedSource> {
  const { database, kinds, cipher, log, skills } = state;
  const row = await findSource(database.read, sourceId);
  if (row === undefined) throw notFound('Source');
  const kind = kinds.get(row.kind);
  if (kind === undefined) throw new Error(`There is no kind ${row.kind} of remote skills`);
  const secretive = { secrets: undefined };
  try {
    const source = openSource(cipher, row, await findDocument(database.read, row.id));
    addSecrets(secretive, secretTextsOf(source));
    const discovered = await discoverInTime(kind, source);
    const checked = await checkTools(state, sourceId, discovered);
    const stored = await compareAndStore(state, { row, discovered, checked });
    await skills.refresh();
    log.info({ source: row.name, tools: checked.named.size }, 'a remote source was looked at');
    return stored;
  } catch (error) {
    if (!(error instanceof RemoteFault)) throw error;
    const fault = redacted(secretive, error.message);
    log.warn({ source: row.name, fault }, 'a remote source could not be looked at');
    const stored = await storeFault(state, row, fault, error.asksForAccount);
    return error.isOfAccount ? { ...stored, faultForRuns } : stored;
  }
}

/** What the service offers. Throws RemoteFault, also where the kind does not end in time. */
async function discoverInTime(kind: RemoteKind, source: RemoteSource): Promise<Discovered> {
  const signal = AbortSignal.timeout(refreshMs);
  try {
    return await Promise.race([kind.discover(source, signal), aborted(signal)]);
  } catch (error) {
    if (error !== signal.reason) throw error;
    const message = `${source.name} could not be looked at within ${refreshMs / 1_000} s`;
    throw new RemoteFault(message, { code: 'upstream_unavailable', retryable: true });
  }
}

interface Checked {
  readonly named: ReadonlyMap<string, RemoteTool>;
  /** By the names of their skills, as `named`. */
  readonly variants: ReadonlyMap<string, readonly RemoteTool[]>;
  readonly leftOut: readonly LeftOutTool[];
}

/** The tools that can be skills, by name, and the reasons why the others cannot. */
async function checkTools(
  { database }: RemoteSkillsState,
  sourceId: string,
  discovered: Discovered,
): Promise<Checked> {
  const known = new Set((await listVersions(database.read, sourceId)).map(({ digest }) => digest));
  const { named, leftOut: unnamed } = nameTools(discovered.tools);
  const leftOut = [...discovered.leftOut, ...unnamed];
  const usable = new Map<string, RemoteTool>();
  const isUsable = (tool: RemoteTool) =>
    known.has(digestOfTool(tool)) || faultOf(tool) === undefined;
  for (const [name, tool] of named) {
    const fault = known.has(digestOfTool(tool)) ? undefined : faultOf(tool);
    if (fault === undefined) usable.set(name, tool);
    else leftOut.push({ tool: tool.tool, reason: `${tool.tool} ${fault}` });
    // Yields: checking a schema takes a millisecond or more, and a service may have hundreds.
    await new Promise(setImmediate);
  }
  return {
    named: usable,
    variants: await variantsOf(usable, discovered.variants ?? [], isUsable),
    leftOut,
  };
}

/** The other definitions of tools that can be skills. */
async function variantsOf(
  named: ReadonlyMap<string, RemoteTool>,
  offered: readonly RemoteTool[],
  isUsable: (tool: RemoteTool) => boolean,
): Promise<Checked['variants']> {
  const ofTool = Map.groupBy(offered, ({ tool }) => tool);
  const variants = new Map<string, RemoteTool[]>();
  for (const [name, { tool }] of named) {
    const usable = (ofTool.get(tool) ?? []).filter(isUsable);
    if (usable.length > 0) variants.set(name, usable);
    await new Promise(setImmediate);
  }
  return variants;
}

function faultOf({ description, input, output }: RemoteTool): string | undefined {
  if (!isCleanText(description)) return 'has a description that is not well-formed Unicode';
  if (Buffer.byteLength(description) > descriptionBytesMax) {
    return `has a description of more than ${descriptionBytesMax} bytes`;
  }
  return (
    schemaFault('input', input) ?? (output === null ? undefined : schemaFault('output', output))
  );
}

function schemaFault(what: string, schema: RemoteTool['input']): string | undefined {
  try {
    checkBoundedSchema(schema);
    // As the skill has it.
    checkBoundedSchema(shownSchema(schema));
    return undefined;
  } catch (error) {
    if (error instanceof SchemaError) return `has an ${what} schema that ${error.message}`;
    throw error;
  }
}

interface Found {
  readonly row: SourceRow;
  readonly discovered: Discovered;
  readonly checked: Checked;
}

/** Comparisons of one refresh, of which another process changes what they compare with. */
const comparisonsMax = 5;

/** Compares outside the transaction that stores, because comparing strangers' schemas takes time. */
async function compareAndStore(state: RemoteSkillsState, found: Found): Promise<SourceRow> {
  for (let i = 0; i < comparisonsMax; i++) {
    const comparison = await compareWithStored(state, found);
    const stored = await state.database.write((tx) => store(state, tx, found, comparison));
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
  state: RemoteSkillsState,
  { row, discovered, checked }: Found,
): Promise<StoredComparison> {
  const { differenceOf } = await import('./difference.ts');
  const leftOut = checked.leftOut
    .slice(0, leftOutMax)
    .map(({ tool, reason }) => ({ tool, reason: shortText(reason) }));
  const about = { ...discovered.about, left_out: leftOut, left_out_total: checked.leftOut.length };
  const found = {
    settings: settingsWith(row, discovered.learned),
    about: JSON.stringify(about),
  };
  const stored = await listStored(state.database.read, row);
  const { refreshedAt, known, registered } = stored;
  const compared = await compareTools({
    ...{ sourceId: row.id, isFirst: refreshedAt === null && known.length === 0, known, registered },
    ...checked,
    ...{ now: state.clock.now(), differenceOf },
    isPartial: discovered.isPartial === true,
    whyUnusable: usabilityOf(state, { ...row, ...found }),
  });
  return { compared, basis: basisOf(stored), found };
}

async function listStored(db: Handle, row: SourceRow) {
  const refreshedAt = (await findSource(db, row.id))?.refreshed_at ?? null;
  const known = await listVersions(db, row.id);
  return { refreshedAt, known, registered: await listRemoteVersions(db, categoryOf(row)) };
}

/** Equal while a comparison with the stored versions would have the same result. A digest stands for a definition. */
function basisOf({
  refreshedAt,
  known,
  registered,
}: Awaited<ReturnType<typeof listStored>>): string {
  const versions = known.map(({ skill_name, version, digest, state, reason, activated_at }) =>
    JSON.stringify([skill_name, version, digest, state, reason, activated_at]),
  );
  const names = registered.map(({ skill_name, version }) => `${skill_name} ${version}`);
  return JSON.stringify([refreshedAt === null, versions.sort(), names.sort()]);
}

/** Stores the result; `changed` if the stored versions are not those that it was compared with. */
async function store(
  state: RemoteSkillsState,
  tx: Transaction,
  { row }: Found,
  { compared, basis, found }: StoredComparison,
): Promise<SourceRow | 'changed'> {
  const now = state.clock.now();
  // First, because this update locks the source against refreshes of other processes.
  const locked = await updateSource(tx, row.id, { updated_at: now });
  if (locked === undefined) throw notFound('Source');
  if (haveSettingsChanged(row, locked)) return locked;
  if (basisOf(await listStored(tx, row)) !== basis) return 'changed';
  const available = { status: 'available', fault: null, fault_at: null } as const;
  const changes = { ...available, ...found, refreshed_at: now };
  const source = (await updateSource(tx, row.id, changes)) ?? locked;
  await storeCompared(tx, compared, now);
  await registerVersions(tx, state.clock, source);
  return source;
}

/** Whether the settings changed during the refresh. Its result is dropped, because the change starts another refresh. */
function haveSettingsChanged(before: SourceRow, now: SourceRow): boolean {
  return now.settings !== before.settings || now.secrets !== before.secrets;
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
    const { state, reason } = version;
    const short = reason === null ? null : shortText(reason);
    await updateVersion(tx, version, { state, reason: short, updated_at: now });
  }
  await insertVersions(tx, added);
}

async function storeFault(
  { database, clock }: RemoteSkillsState,
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
