import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { healthQuery } from '../api/health.ts';
import { readHealthAgain, resumeQueries } from '../api/queries.ts';
import { CloudOff } from '../ui/icons.tsx';
import { exactTime } from '../ui/Time.tsx';

/** A note on every page while the platform cannot be reached; the page keeps the data that it has. */
export function Connection() {
  const { isError, dataUpdatedAt } = useQuery(healthQuery);
  const wasLost = useRef(false);
  useEffect(() => {
    // A device without a network can still reach a platform on the same machine, so the health decides.
    addEventListener('offline', readHealthAgain);
    addEventListener('online', readHealthAgain);
    return () => {
      removeEventListener('offline', readHealthAgain);
      removeEventListener('online', readHealthAgain);
    };
  }, []);
  useEffect(() => {
    // Queries that failed meanwhile run again once the platform answers.
    if (wasLost.current && !isError) resumeQueries();
    wasLost.current = isError;
  }, [isError]);
  if (!isError) return null;
  const cause = navigator.onLine ? '' : 'This device is offline. ';
  const asOf =
    dataUpdatedAt === 0
      ? ''
      : ` What you see is of ${exactTime(new Date(dataUpdatedAt).toISOString())}.`;
  return (
    <p
      role="alert"
      className="sticky top-0 z-20 flex items-center gap-2.5 border-b bg-warn-soft px-4 py-2 text-[13px] text-warn-text max-md:top-13 sm:px-6 lg:px-8"
    >
      <CloudOff className="size-4 shrink-0" aria-hidden />
      <span>
        {cause}The platform cannot be reached; trying again.{asOf}
      </span>
    </p>
  );
}
