/** Defaults of queries: cache time, retries, and reactions to errors. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError, isRefused, Unreachable } from './client.ts';
import { tellRecovered } from './recovery.ts';
import { sessionQuery } from './session.ts';

const liveMs = 3_000;

/** The polling interval of visible lists. None after a refusal: a session without the scope is always refused. */
export const live = ({ state }: { state: { error: Error | null } }): number | false =>
  isRefused(state.error) ? false : liveMs;

const signedOut = ['authentication_required', 'invalid_api_key', 'api_key_expired'];

/** Reads the session again after a refusal without one, and the health after a request without a response. */
function onError(error: Error): void {
  if (error instanceof Unreachable) readHealthAgain();
  if (error instanceof ApiError && error.status === 401 && signedOut.includes(error.code)) {
    readSessionAgain();
  }
}

/** The page shows that the platform cannot be reached. */
export function readHealthAgain(): void {
  void queryClient.invalidateQueries({ queryKey: ['health'] });
}

/** The page shows that its session has ended or belongs to another organization. */
export function readSessionAgain(): void {
  const { queryKey } = sessionQuery;
  if (queryClient.getQueryData(queryKey)?.isOver) return;
  void queryClient.invalidateQueries({ queryKey }, { cancelRefetch: false });
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      if (queryKey[0] !== 'health') onError(error);
    },
  }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    // The browser's word for being offline is not asked: the platform may run on the same machine.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      staleTime: 2_000,
      // A refusal (4xx) would repeat; an unreachable platform may answer the next time.
      retry: (failures, error) =>
        !(error instanceof ApiError && error.status < 500) && failures < 2,
    },
  },
});

/** Refetches visible data and resumes streams, after the platform or the session is back. */
export function resumeQueries(): void {
  void queryClient.invalidateQueries();
  tellRecovered();
}
