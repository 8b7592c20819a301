/** Lists in one form: awaited, the first page; iterated, all entries, read page by page. */

export interface Page<Entry> {
  readonly data: readonly Entry[];
  /** Entries on all pages; null where the platform does not count them. */
  readonly total: number | null;
  /** The offset of the next page; null on the last one. */
  readonly nextOffset: number | null;
}

/**
 * `await` gives the page that was asked for, `for await` each entry of that page and all after it. Entries that
 * are added or deleted meanwhile can move others over the edge of a page.
 */
export interface Pages<Entry> extends PromiseLike<Page<Entry>>, AsyncIterable<Entry> {}

/** A list whose pages `read` reads from an offset; null is the requested page. */
export function pagesOf<Entry>(
  read: (offset: number | null) => Promise<Page<Entry>>,
): Pages<Entry> {
  return {
    // biome-ignore lint/suspicious/noThenProperty: it is to be awaited
    then(onPage, onError) {
      return read(null).then(onPage, onError);
    },
    async *[Symbol.asyncIterator]() {
      let offset: number | null = null;
      do {
        const page: Page<Entry> = await read(offset);
        yield* page.data;
        offset = page.nextOffset;
      } while (offset !== null);
    },
  };
}

/** The page of an answer: an object with `data`, or a bare list with its numbers in headers. */
export function pageOf<Entry>(
  answer: unknown,
  headers: Headers,
  asked: { readonly offset: number; readonly isPaged: boolean },
): Page<Entry> {
  const isBare = Array.isArray(answer);
  const data = (isBare ? answer : (answer as { data: Entry[] }).data) as readonly Entry[];
  const counted = isBare ? numberOf(headers.get('x-total-count')) : (answer as Page<Entry>).total;
  const total = counted ?? (asked.isPaged ? null : data.length);
  const after = asked.offset + data.length;
  const cut = numberOf(headers.get('x-next-offset'));
  const isLast = !asked.isPaged || data.length === 0 || (total !== null && after >= total);
  return { data, total, nextOffset: cut ?? (isLast ? null : after) };
}

function numberOf(text: string | null): number | null {
  return text === null || text === '' || Number.isNaN(Number(text)) ? null : Number(text);
}
