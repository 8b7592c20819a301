/** The files that the next message of a chat is about: kept by the platform as soon as they are chosen. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { keepFile } from '../api/files.ts';

/** Files of one message. */
const filesMax = 20;

export function useAttached(user: string) {
  const [ids, setIds] = useState<readonly string[]>([]);
  const keep = useMutation({
    async mutationFn(files: readonly File[]) {
      for (const file of files) {
        const { id } = await keepFile(file, user);
        setIds((before) => [...before, id].slice(0, filesMax));
      }
    },
  });
  return {
    ids,
    isKeeping: keep.isPending,
    error: keep.error,
    add(files: readonly File[]) {
      if (files.length > 0) keep.mutate(files);
    },
    remove(id: string) {
      setIds((before) => before.filter((one) => one !== id));
    },
    set(next: readonly string[]) {
      setIds(next);
    },
  } as const;
}
