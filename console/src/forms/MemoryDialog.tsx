import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { changeMemory, createMemory } from '../api/memories.ts';
import { useReachesUsers } from '../shell/session.ts';
import { issueOf, TextAreaField, TextField } from '../ui/Field.tsx';
import { textLink } from '../ui/Links.tsx';
import { Time } from '../ui/Time.tsx';
import { FormDialog } from './FormDialog.tsx';
import { jsonText, ObjectField } from './ObjectField.tsx';
import { objectOf } from './object-of.ts';

const fields = ['content', 'tag', 'metadata', 'user_id', 'expires_at'];

/** Adds a memory, or changes the given one. */
export function MemoryDialog({
  agentId,
  memory,
  onClose,
}: {
  agentId: string;
  memory: Schema<'Memory'> | null;
  onClose: () => void;
}) {
  const mayNameUsers = useReachesUsers();
  const [content, setContent] = useState(memory?.content ?? '');
  const [tag, setTag] = useState(memory?.tag ?? '');
  const [user, setUser] = useState('');
  const [expiry, setExpiry] = useState(memory?.expires_at ?? '');
  const [metadata, setMetadata] = useState(jsonText(memory?.metadata ?? {}));
  const save = async () => {
    const given: Schema<'MemoryChanges'> = {
      content,
      ...((memory !== null || tag !== '') && { tag }),
      metadata: objectOf(metadata, 'metadata'),
      ...(expiry !== (memory?.expires_at ?? '') && { expires_at: expiry || null }),
    };
    return memory === null
      ? createMemory(agentId, { ...given, ...(user && { user_id: user }) })
      : changeMemory(memory, given);
  };
  return (
    <FormDialog
      title={memory === null ? 'New memory' : 'Edit memory'}
      description={
        memory === null ? <>What {agentId} is to know later.</> : <Origin memory={memory} />
      }
      verb={memory === null ? 'Add memory' : 'Save memory'}
      fields={fields}
      act={save}
      done={memory === null ? 'The memory is added' : 'The memory is saved'}
      changes={[['memories', agentId]]}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextAreaField
            label="Content"
            error={issueOf(error, 'content')}
            rows={6}
            value={content}
            onValue={setContent}
            placeholder="Ada prefers short answers."
            className="resize-y"
          />
          <TextField
            label="Tag"
            optional={memory === null}
            hint="A word to filter by, such as preference. If empty, fact."
            error={issueOf(error, 'tag')}
            value={tag}
            placeholder="fact"
            onValue={setTag}
          />
          {memory === null && mayNameUsers && (
            <TextField
              label="User"
              optional
              hint="Only runs for this user recall it. If empty, the runs of all users do."
              error={issueOf(error, 'user_id')}
              value={user}
              onValue={setUser}
            />
          )}
          <TextField
            label="Expires"
            optional
            hint="From then on it is not found. If empty, never."
            placeholder="2030-01-31T12:00:00Z"
            error={issueOf(error, 'expires_at')}
            value={expiry}
            onValue={setExpiry}
          />
          <ObjectField
            label="Metadata (a JSON object)"
            rows={3}
            value={metadata}
            onValue={setMetadata}
            error={issueOf(error, 'metadata')}
          />
        </>
      )}
    </FormDialog>
  );
}

/** Whose it is, since when, and the run that wrote it. */
function Origin({ memory }: { memory: Schema<'Memory'> }) {
  const { agent_id, user_id, created_at, source } = memory;
  return (
    <>
      Of {user_id === null ? agent_id : `${user_id}, for ${agent_id}`}, since{' '}
      <Time value={created_at} exact />
      {source === null ? (
        ', from a client'
      ) : (
        <>
          , from{' '}
          <Link to="/jobs/$jobId" params={{ jobId: source.job_id }} className={textLink}>
            a job
          </Link>{' '}
          of{' '}
          <Link
            to="/conversations/$conversationId"
            params={{ conversationId: source.conversation_id }}
            className={textLink}
          >
            this conversation
          </Link>
        </>
      )}
    </>
  );
}
