/** The profile that an agent keeps of a user: shown, changed and deleted. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { deleteProfile, profileQuery, putProfile } from '../api/memories.ts';
import { FormDialog } from '../forms/FormDialog.tsx';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { issueOf, TextAreaField } from '../ui/Field.tsx';
import { Pencil, Trash2 } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

type Profile = Schema<'Profile'>;

export function ProfileOfUser({ agentId, userId }: { agentId: string; userId: string }) {
  const [doing, setDoing] = useState<'edit' | 'delete' | null>(null);
  const query = useQuery(profileQuery(agentId, userId));
  const remove = useAct({
    act: () => deleteProfile(agentId, userId),
    done: 'The profile is deleted',
    changes: [['memories', agentId]],
    quiet: true,
  });
  const profile = query.data?.version ? query.data : null;
  return (
    <Section
      title={`Profile of ${userId}`}
      actions={
        <>
          <ButtonLink to="/users/$userId" params={{ userId }}>
            Data of this user
          </ButtonLink>
          <Button icon={<Pencil />} onClick={() => setDoing('edit')}>
            {profile === null ? 'Write a profile' : 'Edit the profile'}
          </Button>
          {profile !== null && (
            <Button look="danger" icon={<Trash2 />} onClick={() => setDoing('delete')}>
              Delete the profile
            </Button>
          )}
        </>
      }
    >
      <Loaded query={query} lines={2}>
        {(found) => <Shown profile={found} />}
      </Loaded>
      {doing === 'edit' && (
        <EditProfile
          agentId={agentId}
          userId={userId}
          profile={profile}
          onClose={() => setDoing(null)}
        />
      )}
      {doing === 'delete' && (
        <Confirm
          open
          onClose={() => setDoing(null)}
          title="Delete this profile?"
          verb="Delete"
          act={() => remove.mutateAsync(undefined)}
        >
          <p>The agent no longer knows it. This cannot be undone.</p>
        </Confirm>
      )}
    </Section>
  );
}

function Shown({ profile }: { profile: Profile }) {
  const { content, version, updated_at, source } = profile;
  if (updated_at === null) {
    return (
      <p className="text-[13px] text-muted">
        None yet. A profile is always in the prompt of the agent’s model, in runs for this user.
      </p>
    );
  }
  return (
    <div className="flex flex-col gap-2 text-[13px]">
      <p className="whitespace-pre-wrap break-words">{content}</p>
      <p className="text-muted">
        Version {version}, <Time value={updated_at} />, from{' '}
        {source === null ? (
          'a client'
        ) : (
          <Link to="/jobs/$jobId" params={{ jobId: source.job_id }} className={textLink}>
            a job
          </Link>
        )}
      </p>
    </div>
  );
}

function EditProfile({
  agentId,
  userId,
  profile,
  onClose,
}: {
  agentId: string;
  userId: string;
  profile: Profile | null;
  onClose: () => void;
}) {
  const [content, setContent] = useState(profile?.content ?? '');
  return (
    <FormDialog
      title={`Profile of ${userId}`}
      description={`What ${agentId} always knows of this user.`}
      verb="Save profile"
      fields={['content']}
      act={() => putProfile(agentId, userId, { content, version: profile?.version ?? 0 })}
      done="The profile is saved"
      changes={[['memories', agentId]]}
      onClose={onClose}
    >
      {(error) => (
        <TextAreaField
          label="Profile"
          hint="One fact a line."
          error={issueOf(error, 'content')}
          rows={8}
          value={content}
          onValue={setContent}
          placeholder="Prefers short answers."
          className="resize-y"
        />
      )}
    </FormDialog>
  );
}
