/**
 * Search parameters of a url with some changed; undefined removes one. A changed filter starts at the
 * first page.
 */
export function changed<Search extends { page?: number }>(
  search: Search,
  change: { [K in keyof Search]?: Search[K] | undefined },
): Search {
  const { page: _, ...words } = { ...search, ...change };
  const entries = Object.entries(words).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Search;
}
