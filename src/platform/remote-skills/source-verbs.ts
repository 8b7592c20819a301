/** The operations of administrators on sources of any kind: list, get and refresh sources, activate and reject versions. */
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Skill } from '../../core/skills/registry.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { everyOrganization, organizationsOfSource } from './organizations.ts';
import { refreshSource } from './refresh.ts';
import {
  addSource,
  decideVersion,
  listSourcesWithCounts,
  loadSource,
  loadVersion,
  type ReadVersion,
  type SourceFields,
} from './remote-skills.ts';
import type { SourceRow } from './sources.store.ts';
import { categoryOf, type RemoteSkills } from './state.ts';
import { countsByState, pinnedVersionView, versionViews } from './version-views.ts';
import { listVersions } from './versions.store.ts';

/** The sources of one kind. */
export abstract class Sources<Summary extends object> {
  readonly remote: RemoteSkills;
  readonly #kind: SourceRow['kind'];

  constructor(remote: RemoteSkills, kind: SourceRow['kind']) {
    this.remote = remote;
    this.#kind = kind;
  }

  /** A source without its skills. */
  abstract summary(source: SourceRow): Summary;

  /** Throws `404` for an unknown one. */
  rowOf(name: string): Promise<SourceRow> {
    return loadSource(this.remote, this.#kind, name);
  }

  async find(name: string) {
    return this.detail(await this.rowOf(name));
  }

  async detail(source: SourceRow) {
    const versions = await listVersions(this.remote.database.read, source.id);
    return {
      ...this.summary(source),
      skills: versionViews(source, versions, this.#skills(source)),
    };
  }

  /** A version with all that is pinned of it. */
  async findVersion(name: string, named: Pick<ReadVersion, 'skillName' | 'version'>) {
    const source = await this.rowOf(name);
    const version = await loadVersion(this.remote, source, named);
    return pinnedVersionView(source, version, this.#skills(source));
  }

  async list(page: PageAsked) {
    const { sources, total } = await listSourcesWithCounts(this.remote, this.#kind, page);
    const data = sources.map(({ source, counts = [] }) => ({
      ...this.summary(source),
      skills: countsByState(counts),
    }));
    return { data, total };
  }

  async refresh(name: string) {
    const { id } = await this.rowOf(name);
    return this.detail(await refreshSource(this.remote, id));
  }

  protected async addNamed(name: string, fields: SourceFields) {
    return this.detail(await addSource(this.remote, this.#kind, name, fields));
  }

  /** Decides versions one after the other; the first that cannot be decided ends it. */
  protected async decide(
    decision: 'active' | 'rejected',
    name: string,
    versions: readonly ReadVersion[],
  ) {
    const source = await this.rowOf(name);
    for (const version of versions) await decideVersion(this.remote, source, version, decision);
    return this.find(name);
  }

  /** The skills of the category of a source, active or not. */
  #skills(source: SourceRow): readonly Skill[] {
    const category = categoryOf(source);
    return this.remote.skills.listAll().filter((skill) => skill.category === category);
  }
}

/** What the summaries of all kinds have. */
export function sourceSummary(source: SourceRow, about: Json) {
  return {
    name: source.name,
    category: categoryOf(source),
    organizations: [...(organizationsOfSource(source) ?? [everyOrganization])],
    are_organizations_named: source.organizations !== null,
    fault: source.fault,
    fault_at: timestampOrNull(source.fault_at),
    refreshed_at: timestampOrNull(source.refreshed_at),
    left_out: (about['left_out'] ?? []) as { tool: string; reason: string }[],
    left_out_total: Number(about['left_out_total'] ?? 0),
    created_at: timestamp(source.created_at),
    updated_at: timestamp(source.updated_at),
  };
}

export const textIn = (value: unknown) => (typeof value === 'string' ? value : null);
