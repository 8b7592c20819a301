/** What the verbs of remote skills share. */
import type { Database, Transaction } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Cipher } from '../kernel/encryption.ts';
import type { Json } from '../kernel/json.ts';
import type { Logger } from '../kernel/log.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import { recordRemoteSkills } from '../skills/remote-skills.ts';
import { definitionIn } from './compare-tools.ts';
import { factsOf, type RemoteSkill } from './definitions.ts';
import type { HeldQuestions } from './held-questions.ts';
import type { RemoteKind } from './remote-kind.ts';
import type { SourceRow } from './sources.store.ts';
import { listVersions, type VersionRow } from './versions.store.ts';

export interface RemoteSkillsDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Null without an encryption key: secrets can be neither stored nor used then. */
  readonly cipher: Cipher | null;
  readonly skills: Pick<SkillRegistry, 'refresh' | 'list' | 'listAll' | 'sourceOf'>;
  readonly kinds: ReadonlyMap<string, RemoteKind>;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

export interface RemoteSkillsState extends RemoteSkillsDeps {
  /** Looks under way, by source. */
  readonly looking: Map<string, Promise<SourceRow>>;
  /** When this process last looked at a source, monotonic. */
  readonly lookedAt: Map<string, number>;
  /** The questions of this process that hold their calls. */
  readonly held: HeldQuestions;
  /** Looks that sources have asked for, and that are to be made, by source. */
  readonly noticed: Map<string, NodeJS.Timeout>;
}

/** The settings that sources of all kinds have. */
interface CommonSettings {
  readonly timeout_ms?: number;
  readonly idempotent_tools?: readonly string[];
  readonly trust_annotations?: boolean;
}

const timeoutMsDefault = 60_000;

export function categoryOf({ kind, name }: Pick<SourceRow, 'kind' | 'name'>): string {
  return `${kind}-${name}`;
}

/** A version with what the operator has set for its source. */
export function remoteSkillOf(source: SourceRow, row: VersionRow): RemoteSkill {
  const settings: CommonSettings = JSON.parse(source.settings) as Json;
  const definition = definitionIn(row);
  const isTrusted = settings.trust_annotations === true && definition.saysIdempotent;
  return {
    category: categoryOf(source),
    name: row.skill_name,
    version: row.version,
    tool: row.tool,
    definition,
    timeoutMs: settings.timeout_ms ?? timeoutMsDefault,
    hasContent: source.kind === 'mcp',
    isIdempotent: isTrusted || settings.idempotent_tools?.includes(row.tool) === true,
  };
}

/** Makes the registry's rows agree with the versions that are active. */
export async function registerVersions(
  tx: Transaction,
  clock: Clock,
  source: SourceRow,
): Promise<void> {
  const versions = await listVersions(tx, source.id);
  const active = versions.filter(({ state }) => state === 'active');
  const owner = { id: source.id, category: categoryOf(source) };
  const facts = active.map((row) => factsOf(remoteSkillOf(source, row)));
  await recordRemoteSkills(tx, clock, owner, facts);
}
