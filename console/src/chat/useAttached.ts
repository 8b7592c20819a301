/** The files that the next message of a chat is about: kept by the platform as soon as they are chosen. */
import { useMutation } from '@tanstack/react-query';
import { useId, useRef, useState } from 'react';
import { keepFile } from '../api/files.ts';

/** Files of one message. */
const filesMax = 20;

export function useAttached(user: string) {
  const [ids, setIds] = useState<readonly string[]>([]);
  /** Counts the messages: a file that is kept after its message was left is not of the next one. */
  const message = useRef(0);
  const keep = useMutation({
    // One after the other, so that the last one ends when all are kept.
    scope: { id: useId() },
    async mutationFn({ files, of }: { files: readonly File[]; of: number }) {
      for (const file of files) {
        if (message.current !== of) return;
        const { id } = await keepFile(file, user);
        if (message.current !== of) return;
        setIds((before) => [...before, id].slice(0, filesMax));
      }
    },
  });
  return {
    ids,
    isKeeping: keep.isPending,
    error: keep.error,
    add(files: readonly File[]) {
      if (files.length > 0) keep.mutate({ files, of: message.current });
    },
    remove(id: string) {
      setIds((before) => before.filter((one) => one !== id));
    },
    set(next: readonly string[]) {
      message.current += 1;
      keep.reset();
      setIds(next);
    },
  } as const;
}
