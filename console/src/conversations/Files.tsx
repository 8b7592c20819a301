import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { bytesOf, fileQuery } from '../api/files.ts';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Download } from '../ui/icons.tsx';
import { offer } from '../ui/offer.ts';
import { useAct } from '../ui/useAct.ts';

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
    <ul aria-label="Files" className="flex flex-wrap items-start gap-2 py-1">
      {ids.map((id) => (
        <li key={id} className="flex items-center gap-1 rounded-md border p-1 text-xs">
          <OneFile id={id} hasLink={action === undefined} />
          {action?.(id)}
        </li>
      ))}
    </ul>
  );
}

function OneFile({ id, hasLink }: { id: string; hasLink: boolean }) {
  // A url that the platform has fetched is shown as it is.
  const isKept = /^[0-9a-f-]{36}$/.test(id);
  const { data, isError } = useQuery({ ...fileQuery(id), enabled: isKept });
  if (!isKept) return <span className="max-w-60 truncate px-1">{id}</span>;
  if (isError) return <span className="px-1 text-muted italic">A file that is gone</span>;
  if (data === undefined) return <span className="px-1 text-muted">…</span>;
  const { file, picture } = data;
  return (
    <span className="flex min-w-0 flex-col gap-1">
      {picture !== null && (
        <img
          src={picture}
          alt={file.name}
          className={classes(
            'max-w-full self-start rounded object-contain',
            hasLink ? 'max-h-64' : 'max-h-16',
          )}
        />
      )}
      {hasLink ? (
        <Save id={id} name={file.name} />
      ) : (
        picture === null && <span className="max-w-60 truncate px-1">{file.name}</span>
      )}
    </span>
  );
}

/** Has the browser save a file: it is asked for in the session, as a link could not. */
function Save({ id, name }: { id: string; name: string }) {
  const save = useAct({
    act: async () => offer(await bytesOf(id), name),
    failed: 'The file was not read',
    changes: [],
  });
  return (
    <Button
      size="small"
      look="quiet"
      icon={<Download />}
      busy={save.isPending}
      title={`Save ${name}`}
      className="max-w-60 self-start"
      onClick={() => save.mutate()}
    >
      <span className="truncate">{name}</span>
    </Button>
  );
}
