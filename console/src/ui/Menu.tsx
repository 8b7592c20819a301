import { Menu as Base } from '@base-ui/react/menu';
import type { ReactElement, ReactNode } from 'react';
import { IconButton } from './Button.tsx';
import { classes } from './classes.ts';
import { Ellipsis } from './icons.tsx';

export interface MenuItem {
  readonly label: string;
  readonly icon?: ReactNode;
  readonly act: () => void;
  readonly isDanger?: boolean;
  readonly disabled?: boolean;
}

/** A menu of further actions. */
export function Menu({
  label,
  items,
  trigger,
}: {
  label: string;
  items: readonly MenuItem[];
  trigger?: ReactElement;
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger ?? <IconButton label={label} icon={<Ellipsis />} />} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className="z-50">
          <Base.Popup className="min-w-44 rounded-lg border bg-surface p-1 shadow-high outline-none">
            {items.map(({ label: name, icon, act, isDanger, disabled }) => (
              <Base.Item
                key={name}
                onClick={act}
                disabled={disabled ?? false}
                className={classes(
                  'flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5 text-[13px] outline-none select-none data-disabled:opacity-55 data-highlighted:bg-hover [&_svg]:size-4',
                  isDanger ? 'text-bad-text' : 'text-ink',
                )}
              >
                {icon}
                {name}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
