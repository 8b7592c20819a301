/** How long what was read is believed, and what becomes of a refusal. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError, Unreachable } from './client.ts';
import { type Session, sessionQuery } from './session.ts';

/** How often a list that is looked at is read again. */
export const liveMs = 3_000;

const signedOut = ['authentication_required', 'invalid_api_key', 'api_key_expired'];

/** A session that is over leads to the page where one signs in; who cannot be reached is asked how it is. */
function onError(error: Error): void {
  if (error instanceof Unreachable) void queryClient.invalidateQueries({ queryKey: ['health'] });
  if (error instanceof ApiError && error.status === 401 && signedOut.includes(error.code)) {
    queryClient.setQueryData(sessionQuery.queryKey, null);
  }
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      if (queryKey[0] !== 'health') onError(error);
    },
  }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // What was refused is refused again; what could not be reached may be there the next time.
      retry: (failures, error) =>
        !(error instanceof ApiError && error.status < 500) && failures < 2,
    },
  },
});

/** Somebody else is signed in now, or nobody: what was read before is not for them. */
export function changeSession(session: Session | null): void {
  const [own] = sessionQuery.queryKey;
  queryClient.getMutationCache().clear();
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== own });
  queryClient.setQueryData(sessionQuery.queryKey, session);
}
