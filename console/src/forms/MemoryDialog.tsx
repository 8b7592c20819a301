import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { changeMemory, createMemory } from '../api/memories.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, TextAreaField, TextField } from '../ui/Field.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { jsonText, ObjectField } from './ObjectField.tsx';
import { objectOf } from './object-of.ts';

const fields = ['content', 'tag', 'metadata'];

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
  const [content, setContent] = useState(memory?.content ?? '');
  const [tag, setTag] = useState(memory?.tag ?? '');
  const [metadata, setMetadata] = useState(jsonText(memory?.metadata ?? {}));
  const save = useAct({
    act: async () => {
      const given: Schema<'MemoryChanges'> = {
        content,
        ...((memory !== null || tag !== '') && { tag }),
        metadata: objectOf(metadata, 'metadata'),
      };
      return memory === null ? createMemory(agentId, given) : changeMemory(memory, given);
    },
    done: memory === null ? 'The memory is added' : 'The memory is saved',
    changes: [['memories', agentId]],
    quiet: true,
  });
  const { error } = save;
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title={memory === null ? 'New memory' : 'Edit memory'}
      description={
        memory === null ? (
          <>What {agentId} is to know later.</>
        ) : (
          <>
            Of {agentId}, since <Time value={memory.created_at} exact />
          </>
        )
      }
    >
      <FormFrame
        error={error}
        fields={fields}
        verb={memory === null ? 'Add memory' : 'Save memory'}
        busy={save.isPending}
        onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
        onCancel={onClose}
      >
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
        <ObjectField
          label="Metadata (a JSON object)"
          rows={3}
          value={metadata}
          onValue={setMetadata}
          error={issueOf(error, 'metadata')}
        />
      </FormFrame>
    </Dialog>
  );
}
