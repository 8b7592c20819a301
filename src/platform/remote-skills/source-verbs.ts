/** What operators ask of the sources of any kind: to see them and their versions, to refresh one, to decide versions. */
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { Skill } from '../../core/skills/registry.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { everyOrganization, organizationsOfSource } from './organizations.ts';
import type { RemoteSkills } from './remote-skills.ts';
import type { SourceRow } from './sources.store.ts';
import { categoryOf } from './state.ts';
import { countsByState, pinnedVersionView, versionViews } from './version-views.ts';

type Verbs = 'find' | 'list' | 'versionsOf' | 'versionOf' | 'refresh' | 'activate' | 'reject';

interface SourceVerbsDeps<S extends object> {
  readonly remote: Pick<RemoteSkills, Verbs>;
  readonly kind: SourceRow['kind'];
  /** A source without its skills. */
  readonly summary: (source: SourceRow) => S;
  /** The skills of a category, active or not. */
  readonly skillsOf: (category: string) => readonly Skill[];
}

/** A version in quarantine, with the digest that was read. */
export interface ReadVersion {
  readonly skillName: string;
  readonly version: string;
  readonly digest: string;
}

export function createSourceVerbs<S extends object>(deps: SourceVerbsDeps<S>) {
  const { remote, kind, summary, skillsOf } = deps;
  /** Throws `404` for an unknown one. */
  const rowOf = (name: string) => remote.find(kind, name);
  const detail = async (source: SourceRow) => {
    const versions = await remote.versionsOf(source);
    return { ...summary(source), skills: versionViews(source, versions, skillsOf) };
  };
  /** Decides versions one after the other; the first that cannot be decided ends it. */
  const decide = async (
    verb: 'activate' | 'reject',
    name: string,
    versions: readonly ReadVersion[],
  ) => {
    const source = await rowOf(name);
    for (const version of versions) await remote[verb](source, version);
    return detail(await rowOf(name));
  };
  return {
    rowOf,
    detail,
    decide,
    require: async (name: string): Promise<void> => void (await rowOf(name)),
    find: async (name: string) => detail(await rowOf(name)),
    /** A version with all that is pinned of it. */
    async findVersion(name: string, asked: Pick<ReadVersion, 'skillName' | 'version'>) {
      const source = await rowOf(name);
      return pinnedVersionView(source, await remote.versionOf(source, asked), skillsOf);
    },
    async list(page: PageAsked) {
      const { sources, total } = await remote.list(kind, page);
      const data = sources.map(({ source, counts = [] }) => ({
        ...summary(source),
        skills: countsByState(counts),
      }));
      return { data, total };
    },
    refresh: async (name: string) => detail(await remote.refresh((await rowOf(name)).id)),
  };
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
