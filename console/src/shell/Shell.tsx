import { Dialog } from '@base-ui/react/dialog';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { IconButton } from '../ui/Button.tsx';
import { Menu as MenuIcon, Search, X } from '../ui/icons.tsx';
import { lazyPart } from '../ui/lazily.tsx';
import { Account } from './Account.tsx';
import { Connection } from './Connection.tsx';
import { HealthDot } from './HealthDot.tsx';
import { Logo } from './Logo.tsx';
import { placeGroups } from './places.ts';
import { SkillFaults } from './SkillFaults.tsx';
import { useIsAdministrator, useMayOpen } from './session.ts';

const Palette = lazyPart(async () => (await import('./Palette.tsx')).Palette, {
  waiting: null,
  failed: () => null,
});

/** The menu, and beside it the page. */
export function Shell() {
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const isAdministrator = useIsAdministrator();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => {
    // Preloaded, because users type as soon as it opens.
    void Palette.preload();
    function onKey(event: KeyboardEvent) {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setPaletteOpen((isOpen) => !isOpen);
      }
    }
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the path changes
  useEffect(() => setMenuOpen(false), [path]);
  const search = (
    <button
      type="button"
      onClick={() => setPaletteOpen(true)}
      className="flex h-8.5 w-full items-center gap-2 rounded-md border bg-surface px-2.5 text-[13px] text-muted shadow-low transition-colors hover:border-line-strong"
    >
      <Search className="size-4" aria-hidden />
      Search
      <kbd className="ml-auto rounded border bg-sunken px-1.5 font-sans text-xs">Ctrl K</kbd>
    </button>
  );
  return (
    <div className="flex min-h-dvh max-md:flex-col">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-60 focus:rounded-md focus:bg-surface focus:px-3 focus:py-2 focus:shadow-high"
      >
        Skip to the page
      </a>
      <aside className="sticky top-0 flex h-dvh w-56 shrink-0 flex-col gap-4 border-r bg-sunken p-3 max-md:hidden">
        <Link to="/" className="px-2 pt-1.5">
          <Logo />
        </Link>
        {search}
        {/* Scrolls alone, so that the account stays in sight in a low window. The padding is for focus rings. */}
        <div className="-m-1 min-h-0 grow overflow-y-auto p-1">
          <Places />
        </div>
        <div className="flex flex-col gap-1">
          <HealthDot />
          <Account />
        </div>
      </aside>
      <div className="sticky top-0 z-30 flex h-13 items-center gap-1 border-b bg-sunken px-3 md:hidden">
        <IconButton label="Menu" icon={<MenuIcon />} onClick={() => setMenuOpen(true)} />
        <Link to="/" className="grow">
          <Logo />
        </Link>
        <IconButton label="Search" icon={<Search />} onClick={() => setPaletteOpen(true)} />
      </div>
      <Dialog.Root open={isMenuOpen} onOpenChange={setMenuOpen}>
        <Dialog.Portal>
          <Dialog.Backdrop data-backdrop className="fixed inset-0 z-40 bg-backdrop/45" />
          <Dialog.Popup className="fixed inset-y-0 left-0 z-50 flex w-72 max-w-[85vw] flex-col gap-4 overflow-y-auto border-r bg-sunken p-3 shadow-high">
            <div className="flex items-center justify-between pl-2">
              <Dialog.Title render={<span />}>
                <Logo />
              </Dialog.Title>
              <Dialog.Close render={<IconButton label="Close" icon={<X />} />} />
            </div>
            <Places />
            <div className="mt-auto flex flex-col gap-1">
              <HealthDot />
              <Account />
            </div>
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
      <main id="content" className="min-w-0 grow pb-16">
        <Connection />
        {isAdministrator && <SkillFaults />}
        <Outlet />
      </main>
      {isPaletteOpen && <Palette onClose={() => setPaletteOpen(false)} />}
    </div>
  );
}

function Places() {
  const isAdministrator = useIsAdministrator();
  const mayOpen = useMayOpen();
  return (
    <nav aria-label="Main" className="flex flex-col gap-4">
      {placeGroups
        .filter(({ isAdmin }) => !isAdmin || isAdministrator)
        .map(({ label, places }) => (
          <div key={label}>
            <p className="mb-1 px-2 text-xs font-medium text-muted">{label}</p>
            <ul className="flex flex-col gap-px">
              {places.filter(mayOpen).map(({ label: name, to, icon: Icon, Count }) => (
                <li key={to}>
                  <Link
                    to={to}
                    activeOptions={{ exact: to === '/', includeSearch: false }}
                    className="flex h-8 items-center gap-2.5 rounded-md px-2 text-[13px] transition-colors"
                    activeProps={{ className: 'bg-accent-soft font-medium text-accent-text' }}
                    inactiveProps={{ className: 'text-ink hover:bg-hover' }}
                  >
                    <Icon className="size-4 shrink-0 opacity-80" aria-hidden />
                    {name}
                    {Count && <Count />}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
    </nav>
  );
}
