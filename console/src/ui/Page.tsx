import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import { classes } from './classes.ts';
import { ChevronLeft } from './icons.tsx';

/** The first page begins where browsers begin: before the link that skips the menu. */
let isFirst = true;

/** What every page begins with. `parent` leads to the list that this one is from. */
export function Page({
  title,
  about,
  parent,
  actions,
  children,
}: {
  title: string;
  /** Beside the title, such as a state. */
  about?: ReactNode;
  parent?: { label: string; to: string };
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Skillwright`;
  }, [title]);
  useEffect(() => {
    // Moves the focus here where its element is gone, such as the palette.
    const hasNoPlace = document.activeElement === null || document.activeElement === document.body;
    if (hasNoPlace && !isFirst) heading.current?.focus({ preventScroll: true });
    isFirst = false;
  }, []);
  return (
    <div className="mx-auto flex w-full max-w-[110rem] flex-col gap-5 px-4 py-5 sm:px-6 lg:px-8">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <div className={classes('min-w-0 grow', parent ? 'basis-64' : 'basis-24')}>
          {parent && (
            <nav
              aria-label="Breadcrumb"
              className="mb-1 flex items-center gap-1 text-[13px] text-muted"
            >
              <ChevronLeft className="-ml-1 size-3.5" aria-hidden />
              <Link to={parent.to} className="hover:text-ink hover:underline">
                {parent.label}
              </Link>
            </nav>
          )}
          <div className="flex flex-wrap items-center gap-2.5">
            <h1
              ref={heading}
              tabIndex={-1}
              title={title}
              className="line-clamp-3 min-w-0 text-xl font-semibold tracking-tight wrap-anywhere outline-none"
            >
              {title}
            </h1>
            {about}
          </div>
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A part of a page in a frame of its own. */
export function Section({
  title,
  actions,
  flush = false,
  className,
  children,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  /** Without space within: for a table. */
  flush?: boolean;
  className?: string;
  children: ReactNode;
}) {
  return (
    <section className={classes('min-w-0 rounded-lg border bg-surface shadow-low', className)}>
      {(title || actions) && (
        <div className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b px-4 py-1.5">
          <h2 className="text-[13px] font-semibold">{title}</h2>
          {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
      )}
      <div className={flush ? '' : 'p-4'}>{children}</div>
    </section>
  );
}

/** Names and values, side by side. */
export function Facts({
  facts,
}: {
  facts: readonly (readonly [name: string, value: ReactNode] | null | false)[];
}) {
  const shown = facts.filter((fact) => fact !== null && fact !== false);
  return (
    <dl className="grid grid-cols-[minmax(6rem,max-content)_minmax(0,1fr)] gap-x-5 gap-y-2 text-[13px]">
      {shown.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
