import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';

export interface Tab {
  readonly value: string;
  readonly label: ReactNode;
  readonly content: ReactNode;
}

/** Parts of a page of which one is shown; which one is in the url, so `value` comes from there. */
export function Tabs({
  value,
  onValue,
  tabs,
}: {
  value: string;
  onValue: (value: string) => void;
  tabs: readonly Tab[];
}) {
  return (
    <Base.Root value={value} onValueChange={(next) => onValue(String(next))}>
      <Base.List className="relative flex gap-1 overflow-x-auto border-b">
        {tabs.map(({ value: one, label }) => (
          <Base.Tab
            key={one}
            value={one}
            className="-mb-px border-b-2 border-transparent px-3 py-2 text-[13px] font-medium whitespace-nowrap text-muted transition-colors hover:text-ink data-active:border-accent data-active:text-ink"
          >
            {label}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map(({ value: one, content }) => (
        <Base.Panel key={one} value={one} className="pt-4">
          {content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
