/** Parts of the console whose code is loaded when they are first needed. */
import { type ComponentType, type ReactNode, useEffect, useSyncExternalStore } from 'react';
import { Problem, Skeleton } from './Loading.tsx';
import { Page } from './Page.tsx';

/** How soon code that could not be loaded is asked for again. */
const againMs = 3_000;
/** A page whose code no longer exists is reloaded, but not repeatedly. */
const begunAnewMs = 60_000;
const begunAnewAt = 'begun-anew-at';

interface Looks {
  readonly waiting: ReactNode;
  readonly failed: (retry: () => void) => ReactNode;
  /** What to do when the code cannot be loaded although the platform answers. */
  readonly onGone?: () => void;
}

const problem = new Error('The code of this part could not be loaded; trying again');

const failedPart = (retry: () => void) => <Problem error={problem} retry={retry} />;

/** A part of a page. If its code cannot be loaded, it shows an error in its place, and the rest still works. */
export const lazyPart = <Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  looks: Partial<Looks> = {},
) => lazily(load, { waiting: <Skeleton />, failed: failedPart, ...looks });

/** A whole page. If an upgraded platform no longer has its code, the page is reloaded. */
export const lazyPage = (load: () => Promise<ComponentType>) =>
  lazily(load, {
    waiting: null,
    failed: (retry) => (
      <Page title="Not loaded">
        <Problem error={problem} retry={retry} />
      </Page>
    ),
    onGone() {
      if (Date.now() - Number(sessionStorage.getItem(begunAnewAt)) < begunAnewMs) return;
      sessionStorage.setItem(begunAnewAt, String(Date.now()));
      location.reload();
    },
  });

/**
 * Not `lazy` of React, which never asks again for what it could not load. `preload` is for the router:
 * it resolves in any case.
 */
function lazily<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  { waiting, failed, onGone }: Looks,
) {
  let state: { readonly component?: ComponentType<Props>; readonly hasFailed?: boolean } = {};
  let loading: Promise<void> | undefined;
  const listeners = new Set<() => void>();
  const become = (next: typeof state) => {
    state = next;
    loading = undefined;
    for (const listener of listeners) listener();
  };
  const read = () => {
    loading ??= load().then(
      (component) => become({ component }),
      () => become({ hasFailed: true }),
    );
    return loading;
  };
  async function retry() {
    await read();
    if (state.component !== undefined || onGone === undefined) return;
    const isThere = await fetch('/health').then(
      () => true,
      () => false,
    );
    if (isThere) onGone();
  }
  function subscribe(listener: () => void) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  function Lazy(props: Props) {
    const { component: Part, hasFailed = false } = useSyncExternalStore(subscribe, () => state);
    const isThere = Part !== undefined;
    useEffect(() => {
      if (isThere) return;
      void retry();
      const timer = setInterval(() => void retry(), againMs);
      return () => clearInterval(timer);
    }, [isThere]);
    if (Part !== undefined) return <Part {...props} />;
    return hasFailed ? failed(() => void retry()) : waiting;
  }
  return Object.assign(Lazy, { preload: read });
}
