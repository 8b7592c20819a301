import { createLink, type LinkComponent } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, ButtonHTMLAttributes, ReactNode } from 'react';
import { classes } from './classes.ts';
import { LoaderCircle } from './icons.tsx';

const looks = {
  primary: 'bg-accent text-on-accent hover:bg-accent-hover border-transparent shadow-low',
  secondary: 'bg-surface text-ink hover:bg-hover border-line-strong shadow-low',
  quiet: 'bg-transparent text-muted hover:bg-hover hover:text-ink border-transparent',
  danger: 'bg-surface text-bad-text hover:bg-bad-soft border-line-strong shadow-low',
};
const sizes = { small: 'h-7 px-2 text-[13px] gap-1.5', normal: 'h-8.5 px-3 gap-2' };

interface Look {
  look?: keyof typeof looks;
  size?: keyof typeof sizes;
  icon?: ReactNode;
}

/** The look of a button, for elements with another behaviour (the trigger of a menu). */
const buttonClasses = (
  look: keyof typeof looks = 'secondary',
  size: keyof typeof sizes = 'normal',
) =>
  classes(
    'inline-flex shrink-0 items-center justify-center rounded-md border font-medium whitespace-nowrap transition-colors select-none disabled:opacity-55 [&_svg]:size-4 [&_svg]:shrink-0',
    looks[look],
    sizes[size],
  );

export function Button({
  look,
  size,
  icon,
  busy = false,
  className,
  children,
  disabled,
  ...rest
}: Look & { busy?: boolean } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={classes(buttonClasses(look, size), className)}
    >
      {busy ? <LoaderCircle className="animate-spin" aria-hidden /> : icon}
      {children}
    </button>
  );
}

function Anchor({
  look,
  size,
  icon,
  className,
  children,
  ...rest
}: Look & AnchorHTMLAttributes<HTMLAnchorElement>) {
  return (
    <a {...rest} className={classes(buttonClasses(look, size), className)}>
      {icon}
      {children}
    </a>
  );
}

const LinkedAnchor = createLink(Anchor);

/** A link that looks like a button: it leads somewhere, a button does something. */
export const ButtonLink: LinkComponent<typeof Anchor> = (props) => <LinkedAnchor {...props} />;

/** An icon button with a name for screen readers. */
export function IconButton({
  label,
  icon,
  className,
  ...rest
}: { label: string; icon: ReactNode } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={classes(
        'inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted transition-colors hover:bg-hover hover:text-ink disabled:opacity-55 [&_svg]:size-4',
        className,
      )}
    >
      {icon}
    </button>
  );
}
