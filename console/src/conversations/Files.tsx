import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { fileQuery } from '../api/files.ts';

/** The files of a message: pictures as such, others by their names. */
export function Files({
  ids,
  action,
}: {
  ids: readonly string[];
  action?: (id: string) => ReactNode;
}) {
  if (ids.length === 0) return null;
  return (
    <ul aria-label="Files" className="flex flex-wrap gap-2 py-1">
      {ids.map((id) => (
        <li key={id} className="flex items-center gap-1 rounded-md border p-1 text-xs">
          <OneFile id={id} />
          {action?.(id)}
        </li>
      ))}
    </ul>
  );
}

function OneFile({ id }: { id: string }) {
  // A url that the platform has fetched is shown as it is.
  const isKept = /^[0-9a-f-]{36}$/.test(id);
  const { data, isError } = useQuery({ ...fileQuery(id), enabled: isKept });
  if (!isKept) return <span className="max-w-60 truncate px-1">{id}</span>;
  if (isError) return <span className="px-1 text-muted italic">A file that is gone</span>;
  if (data === undefined) return <span className="px-1 text-muted">…</span>;
  const { file, picture } = data;
  return picture === null ? (
    <span className="max-w-60 truncate px-1">{file.name}</span>
  ) : (
    <img src={picture} alt={file.name} className="max-h-40 max-w-60 rounded object-contain" />
  );
}
