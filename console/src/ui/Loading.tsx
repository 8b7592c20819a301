/** States of a query: loading, failed, and empty. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiError, isRefused, wordsOf } from '../api/client.ts';
import { Button } from './Button.tsx';
import { CircleAlert, ShieldAlert } from './icons.tsx';

/** Grey lines where text will be. */
export function Skeleton({ lines = 5 }: { lines?: number }) {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-3 p-4">
      {Array.from({ length: lines }, (_, i) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
          key={i}
          className="h-4 animate-pulse rounded bg-hover even:w-5/6 [&:nth-child(3n)]:w-2/3"
        />
      ))}
    </div>
  );
}

/** What went wrong, in the platform's own words. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center gap-3 rounded-md bg-bad-soft px-4 py-3 text-bad-text"
    >
      <CircleAlert className="size-4 shrink-0" aria-hidden />
      <p className="min-w-0 grow basis-48 break-words">{wordsOf(error)}</p>
      {retry && (
        <Button size="small" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** An empty state: what will be here, and the first step. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="flex w-full min-w-0 flex-col items-center gap-2 px-6 py-12 text-center">
      {icon && (
        <div className="mb-1 rounded-full bg-sunken p-3 text-muted [&_svg]:size-5">{icon}</div>
      )}
      <p className="font-medium">{title}</p>
      {children && (
        <div className="w-full max-w-md min-w-0 text-[13px] leading-relaxed text-muted">
          {children}
        </div>
      )}
      {action && <div className="mt-2">{action}</div>}
    </div>
  );
}

/** Shows the data of a query, or its error. */
export function Loaded<T>({
  query,
  lines,
  children,
}: {
  query: UseQueryResult<T>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.error instanceof ApiError && query.error.status === 404) {
    return (
      <Empty title={query.error.message}>
        It may have been deleted, or the address is incomplete.
      </Empty>
    );
  }
  if (isRefused(query.error)) {
    return (
      <Empty icon={<ShieldAlert />} title="Not for this session">
        {wordsOf(query.error)}. Sign in with the admin secret, or with an API key that has it.
      </Empty>
    );
  }
  if (query.error) {
    return (
      <div className="p-4">
        <Problem error={query.error} retry={() => void query.refetch()} />
      </div>
    );
  }
  return <Skeleton {...(lines === undefined ? {} : { lines })} />;
}
