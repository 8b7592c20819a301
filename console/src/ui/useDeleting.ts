import type { QueryKey } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useAct } from './useAct.ts';

/** Deletes the thing of a page, and goes to the list `to`. Its confirmation shows a failure. */
export function useDeleting(
  act: () => Promise<unknown>,
  noun: string,
  to: string,
  changes: readonly QueryKey[],
) {
  const navigate = useNavigate();
  return useAct({
    async act() {
      await act();
      // Before anything is read again: it is not there any more.
      await navigate({ to });
    },
    done: `The ${noun} is deleted`,
    changes,
    quiet: true,
  });
}
