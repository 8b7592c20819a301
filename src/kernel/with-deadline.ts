/** The value of a promise, or undefined when it has none after `ms`. It rejects when `done` rejects before that. */
export async function withDeadline<T>(
  done: Promise<T> | undefined,
  ms: number,
): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, ms, undefined);
  try {
    return await Promise.race([done, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
