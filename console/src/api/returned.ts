/**
 * What an authorization server has sent this browser back with. It is taken out of the address before anything else
 * runs: the code is good for one use, and no history is to keep it.
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
