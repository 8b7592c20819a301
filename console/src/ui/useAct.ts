import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { tell, tellProblem } from './toast.ts';

/**
 * Something that changes the platform. When it is done it says so, and what it has changed is read
 * again: the queries whose keys begin with one of `changes`. A failure is told in a toast, unless
 * `quiet`: a form and a question show theirs where they are. With `isSecret`, what was given and what
 * came of it is forgotten with the part of the page that asked for it, or when that calls `reset`.
 */
export function useAct<Given = void, Result = unknown>({
  act,
  done,
  failed,
  changes,
  quiet = false,
  isSecret = false,
}: {
  act: (given: Given) => Promise<Result>;
  /** What has happened: `The job is cancelled`. */
  done?: string | ((result: Result) => string | undefined);
  /** What has not: `The job was not cancelled`. */
  failed?: string;
  changes: readonly QueryKey[];
  quiet?: boolean;
  isSecret?: boolean;
}) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    ...(isSecret && { gcTime: 0 }),
    async onSuccess(result) {
      const said = typeof done === 'function' ? done(result) : done;
      if (said !== undefined) tell(said);
      await Promise.all(changes.map((queryKey) => client.invalidateQueries({ queryKey })));
    },
    onError(error) {
      if (!quiet) tellProblem(failed ?? 'That did not work', error);
    },
  });
}
