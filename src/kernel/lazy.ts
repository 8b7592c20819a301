/**
 * Makes `make` run at the first call only: callers at the same time share one run, and later ones
 * its result. A failure is not kept.
 */
export function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
