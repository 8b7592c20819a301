import { CircleAlert } from '../ui/icons.tsx';
import { Tag } from '../ui/Status.tsx';
import { meaningOf } from './words.ts';

/** An error: the meaning of its code, and its message. */
export function ErrorWords({ error }: { error: { code: string; message: string } }) {
  return (
    <div className="flex gap-3 rounded-md bg-bad-soft px-4 py-3 text-bad-text">
      <CircleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="flex min-w-0 flex-col gap-1">
        <p className="font-medium break-words whitespace-pre-wrap">{error.message}</p>
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1 text-[13px]">
          {meaningOf(error.code)}
          <Tag tone="bad">{error.code}</Tag>
        </p>
      </div>
    </div>
  );
}
