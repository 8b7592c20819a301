import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { tell, tellProblem } from './toast.ts';

/**
 * An action that changes the platform. After success it shows a toast and refetches the queries whose
 * keys begin with one of `changes`. A failure is shown in a toast, unless `quiet`: forms and
 * confirmations show their own errors. With `isSecret`, input and result are dropped when the component
 * unmounts or calls `reset`.
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
  /** The message after success: `The job is cancelled`. */
  done?: string | ((result: Result) => string | undefined);
  /** The title after a failure: `The job was not cancelled`. */
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
      const message = typeof done === 'function' ? done(result) : done;
      if (message !== undefined) tell(message);
      await Promise.all(changes.map((queryKey) => client.invalidateQueries({ queryKey })));
    },
    onError(error) {
      if (!quiet) tellProblem(failed ?? 'That did not work', error);
    },
  });
}
