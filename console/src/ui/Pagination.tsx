import { Button, IconButton } from './Button.tsx';
import { ChevronLeft, ChevronRight } from './icons.tsx';
import { countText } from './Time.tsx';

/** How many a page of a list has. */
export const pageSize = 50;

/**
 * The range of a page and the total. `page` counts from 1. A total of `countedMax` means at least that
 * many, because the platform stops counting there.
 */
export function Pagination({
  page,
  total,
  size = pageSize,
  countedMax,
  onPage,
}: {
  page: number;
  total: number;
  size?: number;
  countedMax?: number | undefined;
  onPage: (page: number) => void;
}) {
  const last = Math.max(1, Math.ceil(total / size));
  const first = total === 0 ? 0 : (page - 1) * size + 1;
  if (page > last) {
    return (
      <nav
        aria-label="Pages"
        className="flex items-center justify-between gap-3 border-t px-4 py-2 text-[13px] text-muted"
      >
        There is no page {countText(page)}.
        <Button size="small" onClick={() => onPage(last)}>
          Go to the last page
        </Button>
      </nav>
    );
  }
  return (
    <nav
      aria-label="Pages"
      className="flex items-center justify-between gap-3 border-t px-4 py-1.5 text-[13px] text-muted"
    >
      <span className="tabular-nums">
        {countText(first)}–{countText(Math.min(page * size, total))} of {countText(total)}
        {total === countedMax && ' or more'}
      </span>
      <span className="flex items-center gap-1">
        <IconButton
          label="Previous page"
          icon={<ChevronLeft />}
          disabled={page <= 1}
          onClick={() => onPage(page - 1)}
        />
        <span className="tabular-nums">
          {countText(page)} / {countText(last)}
        </span>
        <IconButton
          label="Next page"
          icon={<ChevronRight />}
          disabled={page >= last}
          onClick={() => onPage(page + 1)}
        />
      </span>
    </nav>
  );
}
