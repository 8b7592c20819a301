/** The versions of remote skills, as the API shows them. */

import type { Skill } from '../../core/skills/registry.ts';
import { compareVersions } from '../../core/skills/skill-rows.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { definitionIn } from './definitions.ts';
import { organizationsShown } from './organizations.ts';
import type { SourceRow } from './sources.store.ts';
import { remoteSkillOf } from './state.ts';
import type { VersionRow } from './versions.store.ts';

/** How many versions there are of each state. */
export function countsByState(
  counts: readonly { readonly state: VersionRow['state']; readonly n: number }[],
) {
  const of = (state: VersionRow['state']) => counts.find((one) => one.state === state)?.n ?? 0;
  return {
    active: of('active'),
    quarantined: of('quarantined'),
    withdrawn: of('withdrawn'),
    rejected: of('rejected'),
  };
}

/** All versions of a source, by skill; `skills` are those of its category, active or not. */
export function versionViews(
  source: SourceRow,
  versions: readonly VersionRow[],
  skills: readonly Skill[],
) {
  const registered = registeredIds(skills);
  const sorted = versions.toSorted(
    (a, b) =>
      (a.skill_name < b.skill_name ? -1 : a.skill_name > b.skill_name ? 1 : 0) ||
      compareVersions(a.version, b.version),
  );
  return sorted.map((row) => versionView(source, row, registered));
}

/** One version with all that is pinned of it, to be read before it is activated. */
export function pinnedVersionView(source: SourceRow, row: VersionRow, skills: readonly Skill[]) {
  const { title, description, input, output, request = null } = definitionIn(row);
  return {
    ...versionView(source, row, registeredIds(skills)),
    definition: { title, description, input, output, request },
  };
}

function registeredIds(skills: readonly Skill[]) {
  return new Map(skills.map((skill) => [`${skill.version}/${skill.name}`, skill.id]));
}

function versionView(source: SourceRow, row: VersionRow, registered: ReadonlyMap<string, string>) {
  const { category, isIdempotent, definition } = remoteSkillOf(source, row);
  const shown = organizationsShown(row);
  return {
    skill: `${category}/${row.version}/${row.skill_name}`,
    skill_id: registered.get(`${row.version}/${row.skill_name}`) ?? null,
    skill_name: row.skill_name,
    version: row.version,
    tool: row.tool,
    state: row.state,
    reason: row.reason,
    digest: row.digest,
    description: definition.description,
    annotations: definition.annotations,
    retried: isIdempotent,
    organizations: shown === null ? null : [...shown],
    difference: row.difference,
    created_at: timestamp(row.created_at),
    activated_at: timestampOrNull(row.activated_at),
  };
}
