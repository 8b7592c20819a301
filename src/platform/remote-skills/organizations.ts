/**
 * The organizations that the skills of a source belong to (docs/decisions/organizations.md). A source belongs to those
 * that the administrator names. A version that was shown to accounts alone belongs to the organizations of these accounts
 * that are among them.
 */
import { invalid } from '../../kernel/errors.ts';
import type { SourceRow } from './sources.store.ts';
import type { VersionRow } from './versions.store.ts';

/** Names of organizations; null for all. */
export type Organizations = readonly string[] | null;

/** How the API names all organizations. */
export const everyOrganization = '*';

export function isAmong(organizations: Organizations, organizationId: string): boolean {
  return organizations === null || organizations.includes(organizationId);
}

/** Those of a source. All, where an earlier version of the platform has stored it and none were named since. */
export function organizationsOfSource({
  organizations,
}: Pick<SourceRow, 'organizations'>): Organizations {
  const named =
    organizations === null ? [everyOrganization] : (JSON.parse(organizations) as string[]);
  return named.includes(everyOrganization) ? null : named;
}

/** Those whose accounts were shown a version; null where it was shown without an account. */
export function organizationsShown({
  organizations,
}: Pick<VersionRow, 'organizations'>): Organizations {
  return organizations === null ? null : (JSON.parse(organizations) as string[]);
}

/** Those that a version of a source belongs to. */
export function organizationsOfVersion(
  source: Pick<SourceRow, 'organizations'>,
  version: Pick<VersionRow, 'organizations'>,
): Organizations {
  const named = organizationsOfSource(source);
  const shown = organizationsShown(version);
  return shown === null ? named : shown.filter((one) => isAmong(named, one));
}

/** As a version has them in its row: equal ones as equal texts. */
export function storedOrganizations(organizations: Organizations): string | null {
  return organizations === null ? null : JSON.stringify([...new Set(organizations)].toSorted());
}

/** What decides whether organizations have to be named. */
interface SourceToCheck {
  readonly organizations: readonly string[] | undefined;
  /** Why the source may have credentials, as the end of a sentence; null where it has none. */
  readonly mayHaveCredentials: string | null;
}

/**
 * The organizations that a source is stored with. Throws `400` where none are named and the source may have credentials,
 * with which each of its organizations would act, or belongs to named organizations alone (`before`), whose source all
 * others would get.
 */
export function requireOrganizations(
  { organizations, mayHaveCredentials }: SourceToCheck,
  before: Organizations = null,
): readonly string[] {
  if (organizations === undefined) {
    if (mayHaveCredentials !== null) {
      throw invalid(
        'organizations',
        `is required, because ${mayHaveCredentials}: name the organizations that may act with what is set, or ["*"] for all`,
      );
    }
    if (before === null) return [everyOrganization];
    throw invalid(
      'organizations',
      'is required, because the source belongs to named organizations: name them again, or ["*"] for all organizations',
    );
  }
  if (organizations.length > 1 && organizations.includes(everyOrganization)) {
    throw invalid(
      'organizations',
      `${everyOrganization} is for all organizations: name no others beside it`,
    );
  }
  return organizations;
}
