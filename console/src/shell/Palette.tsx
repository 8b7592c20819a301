import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog } from '@base-ui/react/dialog';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { type Found, search, useEverything } from './everything.ts';

/**
 * The command palette: finds pages, actions, skills, agents, schedules, webhooks, triggers and keys by name,
 * jobs and conversations by id, memories by words.
 */
export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  const all = useEverything();
  const found = useMemo(() => search(all, text), [all, text]);
  function go(item: Found) {
    onClose();
    if (typeof item.go === 'function') item.go();
    else void navigate({ to: item.go.to, search: item.go.search ?? {} });
  }
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop data-backdrop className="fixed inset-0 z-40 bg-backdrop/45" />
        <Dialog.Popup
          aria-label="Search"
          className="fixed top-[12vh] left-1/2 z-50 flex max-h-[70vh] w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 flex-col overflow-hidden rounded-xl border bg-surface shadow-high"
        >
          <Autocomplete.Root
            open
            inline
            items={found}
            filter={null}
            value={text}
            onValueChange={setText}
            itemToStringValue={(item: Found) => item.label}
            autoHighlight="always"
          >
            <Autocomplete.Input
              // The dialog gives focus only after a frame, and the letters typed before would be lost.
              autoFocus
              aria-label="Search everything"
              placeholder="Go to a page, a skill, a job by its id; create something…"
              className="h-12 w-full shrink-0 border-b bg-transparent px-4 text-base outline-none"
            />
            <Autocomplete.List className="min-h-0 overflow-y-auto p-1.5 empty:hidden">
              {(item: Found) => (
                <Autocomplete.Item
                  key={item.key}
                  value={item}
                  onClick={() => go(item)}
                  className="flex cursor-pointer items-center gap-3 rounded-md px-3 py-2 outline-none select-none data-highlighted:bg-accent-soft data-highlighted:text-accent-text"
                >
                  <item.icon className="size-4 shrink-0 text-muted" aria-hidden />
                  <span className="min-w-0 grow truncate">{item.label}</span>
                  <span className="shrink-0 text-xs text-muted">{item.about}</span>
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
