/** The state of remote skills, and how sources and versions become skills. */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { recordRemoteSkills } from '../../core/skills/remote-skills.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Cipher } from '../../kernel/encryption.ts';
import type { Json } from '../../kernel/json.ts';
import type { Logger } from '../../kernel/log.ts';
import { definitionIn, factsOf, type RemoteSkill } from './definitions.ts';
import { HeldQuestions } from './held-questions.ts';
import { organizationsOfVersion } from './organizations.ts';
import type { RemoteKind } from './remote-kind.ts';
import type { SourceRow } from './sources.store.ts';
import { listVersions, type VersionRow } from './versions.store.ts';

/** The state of remote skills in a process; the functions of this folder take it. */
export class RemoteSkills {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** Null without an encryption key: secrets can be neither stored nor used then. */
  readonly cipher: Cipher | null;
  readonly skills: SkillRegistry;
  readonly kinds: ReadonlyMap<string, RemoteKind>;
  /** Refreshes of this process, by source. */
  readonly refreshes = {
    underWay: new Map<string, Promise<SourceRow>>(),
    /** When the last one ended, monotonic. */
    endedAt: new Map<string, number>(),
    /** Requested by a service, and not yet begun. */
    scheduled: new Map<string, NodeJS.Timeout>(),
  };
  /** The questions of this process that hold their calls. */
  readonly held = new HeldQuestions();

  constructor(
    { database, clock, log }: Context,
    {
      cipher,
      skills,
      kinds,
    }: {
      readonly cipher: Cipher | null;
      readonly skills: SkillRegistry;
      readonly kinds: ReadonlyMap<string, RemoteKind>;
    },
  ) {
    this.database = database;
    this.clock = clock;
    this.log = log;
    this.cipher = cipher;
    this.skills = skills;
    this.kinds = kinds;
  }
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
  const skills = active.map((row) => ({
    facts: factsOf(remoteSkillOf(source, row)),
    organizations: organizationsOfVersion(source, row),
  }));
  await recordRemoteSkills(tx, clock, owner, skills);
}
