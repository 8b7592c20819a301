import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { changeMemory, createMemory } from '../api/memories.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { Field, Input, issueOf, TextArea } from '../ui/Field.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { Form } from './Form.tsx';
import { jsonOf, jsonText } from './json.ts';

const fields = ['content', 'tag', 'metadata'];

/** Adds a memory, or changes the one that is given. */
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
        metadata: jsonOf(metadata, 'metadata'),
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
      <Form
        error={error}
        fields={fields}
        verb={memory === null ? 'Add memory' : 'Save memory'}
        busy={save.isPending}
        submit={() => save.mutate(undefined, { onSuccess: onClose })}
        onCancel={onClose}
      >
        <Field label="Content" error={issueOf(error, 'content')}>
          {(control) => (
            <TextArea
              {...control}
              rows={6}
              value={content}
              onChange={(event) => setContent(event.target.value)}
              placeholder="Ada prefers short answers."
              className="resize-y"
            />
          )}
        </Field>
        <Field
          label="Tag"
          optional={memory === null}
          hint="One word to list and search by, such as preference. Empty is fact."
          error={issueOf(error, 'tag')}
        >
          {(control) => (
            <Input
              {...control}
              value={tag}
              placeholder="fact"
              onChange={(event) => setTag(event.target.value)}
            />
          )}
        </Field>
        <Field
          label="Metadata"
          optional
          hint="Anything else: a JSON object."
          error={issueOf(error, 'metadata')}
        >
          {(control) => (
            <TextArea
              {...control}
              rows={3}
              spellCheck={false}
              value={metadata}
              onChange={(event) => setMetadata(event.target.value)}
              className="resize-y font-mono text-xs"
            />
          )}
        </Field>
      </Form>
    </Dialog>
  );
}
