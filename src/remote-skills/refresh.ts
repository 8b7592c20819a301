/**
 * A look at what a service offers. What it finds is compared with the versions that are stored, in one transaction
 * with the registry's rows. A service that is away, slow or hostile costs a recorded sentence: its skills stay as they
 * are.
 */
import type { Transaction } from '../database/database.ts';
import { addSecrets, redacted } from '../executors/redaction.ts';
import { notFound } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import { checkSchema } from '../kernel/json-schema.ts';
import { SchemaError } from '../kernel/schema-rules.ts';
import { cleanText, isCleanText } from '../kernel/text.ts';
import { listRemoteVersions } from '../skills/remote-skills.ts';
import { type Compared, compareTools, digestOfTool, type ToolLook } from './compare-tools.ts';
import { shownSchema } from './definitions.ts';
import { type Discovered, type LeftOutTool, RemoteFault, type RemoteTool } from './remote-kind.ts';
import { openSource, secretTextsOf } from './secrets.ts';
import { nameTools } from './skill-names.ts';
import { findDocument, findSource, type SourceRow, updateSource } from './sources.store.ts';
import { categoryOf, type RemoteSkillsState, registerVersions } from './state.ts';
import { deleteVersion, insertVersions, listVersions, updateVersion } from './versions.store.ts';

/** Milliseconds for everything that a look asks of the service. */
const lookMs = 30_000;
const descriptionBytesMax = 16_384;
const faultCharsMax = 1_000;
/** Tools that the reasons of a look name. */
const leftOutMax = 100;

/** Looks at a service and stores what it found, or why it failed. Calls at the same time share one look. */
export function refresh(state: RemoteSkillsState, sourceId: string): Promise<SourceRow> {
  const { looking, lookedAt, clock } = state;
  const underWay = looking.get(sourceId);
  if (underWay !== undefined) return underWay;
  const look = lookAt(state, sourceId).finally(() => {
    looking.delete(sourceId);
    lookedAt.set(sourceId, clock.monotonic());
  });
  looking.set(sourceId, look);
  return look;
}

async function lookAt(state: RemoteSkillsState, sourceId: string): Promise<SourceRow> {
  const { database, kinds, cipher, log, skills } = state;
  const row = await findSource(database.read, sourceId);
  if (row === undefined) throw notFound('Source');
  const kind = kinds.get(row.kind);
  if (kind === undefined) throw new Error(`There is no kind ${row.kind} of remote skills`);
  const secretive = { secrets: undefined };
  try {
    const source = openSource(cipher, row, await findDocument(database.read, row.id));
    addSecrets(secretive, secretTextsOf(source));
    const discovered = await kind.discover(source, AbortSignal.timeout(lookMs));
    const checked = await checkTools(state, sourceId, discovered);
    const { differenceOf } = await import('./difference.ts');
    const stored = await database.write((tx) =>
      store(state, tx, { row, discovered, checked, differenceOf }),
    );
    await skills.refresh();
    log.info({ source: row.name, tools: checked.named.size }, 'a remote source was looked at');
    return stored;
  } catch (error) {
    if (!(error instanceof RemoteFault)) throw error;
    const fault = redacted(secretive, error.message);
    log.warn({ source: row.name, fault }, 'a remote source could not be looked at');
    return await storeFault(state, row, fault, error.asksForAccount);
  }
}

interface Checked {
  readonly named: ReadonlyMap<string, RemoteTool>;
  /** By the names of their skills, as `named`. */
  readonly variants: ReadonlyMap<string, readonly RemoteTool[]>;
  readonly leftOut: readonly LeftOutTool[];
}

/** The tools that can be skills, by name, and why the others cannot. */
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
    // Checking a schema takes a moment, and a service may have hundreds.
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
    checkSchema(schema);
    // As the skill has it.
    checkSchema(shownSchema(schema));
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
  readonly differenceOf: ToolLook['differenceOf'];
}

async function store(
  { clock }: RemoteSkillsState,
  tx: Transaction,
  { row, discovered, checked, differenceOf }: Found,
): Promise<SourceRow> {
  const now = clock.now();
  const leftOut = checked.leftOut
    .slice(0, leftOutMax)
    .map(({ tool, reason }) => ({ tool, reason: shortText(reason) }));
  const about = { ...discovered.about, left_out: leftOut, left_out_total: checked.leftOut.length };
  // First, because it locks the source: another process may look at it too.
  const locked = await updateSource(tx, row.id, {
    ...{ status: 'available', fault: null, fault_at: null },
    ...{ about: JSON.stringify(about), refreshed_at: now, updated_at: now },
  });
  if (locked === undefined) throw notFound('Source');
  const source = await storeLearned(tx, row, locked, discovered.learned);
  const known = await listVersions(tx, row.id);
  const isFirst = row.refreshed_at === null && known.length === 0;
  const registered = await listRemoteVersions(tx, categoryOf(row));
  const compared = compareTools({
    ...{ sourceId: row.id, isFirst, known, registered, now, differenceOf },
    ...checked,
    isPartial: discovered.isPartial === true,
  });
  await storeCompared(tx, compared, now);
  await registerVersions(tx, clock, source);
  return source;
}

/** Stores what a look has found out of the settings that it was made with. */
async function storeLearned(
  tx: Transaction,
  before: SourceRow,
  now: SourceRow,
  learned: Json | undefined,
): Promise<SourceRow> {
  const isChanged = now.settings !== before.settings || now.secrets !== before.secrets;
  if (learned === undefined || isChanged) return now;
  const settings = JSON.stringify({ ...(JSON.parse(now.settings) as Json), ...learned });
  return (await updateSource(tx, now.id, { settings })) ?? now;
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
  const stored = await database.write((tx) => updateSource(tx, row.id, changes));
  if (stored === undefined) throw notFound('Source');
  return stored;
}

const shortText = (text: string) => cleanText(text.slice(0, faultCharsMax));
