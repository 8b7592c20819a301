import type { QueryKey } from '@tanstack/react-query';
import type { Schema } from '../api/client.ts';
import { Button } from '../ui/Button.tsx';
import { Section } from '../ui/Page.tsx';
import { Tags } from '../ui/Tags.tsx';
import { useAct } from '../ui/useAct.ts';
import { Definition, type PinnedVersion } from './Definition.tsx';
import { Difference } from './Difference.tsx';
import { claimsOf } from './definition-text.ts';

type Version = Schema<'RemoteSkillVersion'>;
type Decision = 'activate' | 'reject';

/** How versions of a service outside are read and decided. */
export interface VersionActs {
  readonly decide: (decision: Decision, name: string, version: Version) => Promise<unknown>;
  /** A version with all that is pinned of it. */
  readonly read: (name: string, version: Version) => Promise<PinnedVersion>;
}

/** The versions in quarantine, each with its difference, which a person reads before the decision. */
export function Quarantine({
  source,
  tool,
  acts,
  changes,
}: {
  source: { readonly name: string; readonly skills: readonly Version[] };
  tool: string;
  acts: VersionActs;
  changes: readonly QueryKey[];
}) {
  const waiting = source.skills.filter(({ state }) => state === 'quarantined');
  return waiting.map((version) => (
    <Waiting
      key={version.skill + version.digest}
      version={version}
      tool={tool}
      read={() => acts.read(source.name, version)}
      isRead={waiting.length <= readAtOnceMax}
      decide={(decision) => acts.decide(decision, source.name, version)}
      changes={changes}
    />
  ));
}

/** Versions whose whole definition is read without a click. */
const readAtOnceMax = 5;

function Waiting({
  version,
  tool,
  read,
  isRead,
  decide,
  changes,
}: {
  version: Version;
  tool: string;
  read: () => Promise<PinnedVersion>;
  isRead: boolean;
  decide: (decision: Decision) => Promise<unknown>;
  changes: readonly QueryKey[];
}) {
  const { skill, difference, annotations, organizations } = version;
  const claims = claimsOf(annotations);
  const deciding = useAct({
    act: decide,
    failed: `${skill} was not changed`,
    changes,
  });
  return (
    <Section
      title={<span className="wrap-anywhere">{skill} waits in quarantine</span>}
      actions={
        <>
          <Button
            size="small"
            disabled={deciding.isPending}
            onClick={() => deciding.mutate('reject')}
          >
            Reject
          </Button>
          <Button
            size="small"
            look="primary"
            busy={deciding.isPending}
            onClick={() => deciding.mutate('activate')}
          >
            Activate
          </Button>
        </>
      }
    >
      {difference === null ? (
        <p>
          The {tool} {version.tool} is new.
        </p>
      ) : (
        <Difference label={`What differs in ${skill}`} text={difference} />
      )}
      {organizations !== null && (
        <p className="py-2 text-[13px]">
          Shown to the accounts of, and only for: <Tags values={organizations} />
        </p>
      )}
      {claims.length > 0 && (
        <p className="py-2 text-[13px]">
          Its server’s own claims, which nothing checks: <Tags values={claims} />
        </p>
      )}
      <Definition version={version} read={read} isOpen={isRead && difference === null} />
    </Section>
  );
}
