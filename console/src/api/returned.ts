/**
 * The parameters of an authorization server's redirect to this page. They are removed from the address before anything
 * else runs, so that the single-use code is not kept in the browser's history.
 */

const callback = /^\/console\/oauth\/callback\//;

const isBack = callback.test(location.pathname);

/** Null on every other page. */
export const returned: Readonly<Record<string, string>> | null = isBack
  ? Object.fromEntries(new URLSearchParams(location.search))
  : null;

if (isBack) history.replaceState(history.state, '', location.pathname);

/** The organization for which it was begun: its state begins with it. */
export const returnedTo = (): string | null =>
  /^([a-z0-9][a-z0-9-]*)\./.exec(returned?.['state'] ?? '')?.[1] ?? null;
