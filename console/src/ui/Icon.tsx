/** How an icon of Lucide is drawn: as text, which takes its colour and, by its class, its size. */
import { createElement, type ReactElement } from 'react';

interface IconProps {
  readonly className?: string;
  /** In units of the 24 that an icon is wide; 2 unless given. */
  readonly strokeWidth?: number;
  readonly role?: string;
  readonly 'aria-hidden'?: boolean;
  readonly 'aria-label'?: string;
}

export type LucideIcon = (props: IconProps) => ReactElement;

type Shape = readonly [element: string, attributes: Readonly<Record<string, string>>];

/** The icon of these shapes. Readers of the screen hear its label, and nothing of an icon without one. */
export function iconOf(...shapes: readonly Shape[]): LucideIcon {
  return function Icon({ strokeWidth = 2, 'aria-label': label, ...props }) {
    return (
      <svg
        width="24"
        height="24"
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeLinecap="round"
        strokeLinejoin="round"
        strokeWidth={strokeWidth}
        aria-label={label}
        aria-hidden={label === undefined || undefined}
        {...props}
      >
        {shapes.map(([element, attributes], at) =>
          createElement(element, { key: at, ...attributes }),
        )}
      </svg>
    );
  };
}
