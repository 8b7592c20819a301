import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { Code } from '../ui/Code.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { definitionText } from './definition-text.ts';

export type PinnedVersion = Schema<'PinnedRemoteSkillVersion'>;

interface DefinitionProps {
  readonly version: Schema<'RemoteSkillVersion'>;
  readonly read: () => Promise<PinnedVersion>;
}

/** All that is pinned of a version; read from the platform once it is opened. */
export function Definition({
  isOpen: isOpenFirst,
  ...props
}: DefinitionProps & { isOpen: boolean }) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="cursor-pointer py-2 text-[13px] font-medium">
        The whole definition of {props.version.skill}
      </summary>
      {isOpen && <Pinned {...props} />}
    </details>
  );
}

function Pinned({ version: { skill, digest }, read }: DefinitionProps) {
  const query = useQuery({ queryKey: ['remote-versions', skill, digest], queryFn: read });
  return (
    <Loaded query={query}>
      {({ definition }) => (
        <Code label={`What ${skill} is`} text={definitionText(definition)} tall />
      )}
    </Loaded>
  );
}
