import { Toast } from '@base-ui/react/toast';
import { CircleAlert, CircleCheck, X } from 'lucide-react';
import { IconButton } from './Button.tsx';
import { toasts } from './toast.ts';

/** At the top: at the bottom are the buttons of forms. */
export function Toasts() {
  return (
    <Toast.Provider toastManager={toasts} limit={3}>
      <Toast.Portal>
        <Toast.Viewport className="fixed top-3 left-1/2 z-60 flex w-[calc(100vw-2rem)] max-w-sm -translate-x-1/2 flex-col gap-2">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List() {
  const { toasts: shown } = Toast.useToastManager();
  return shown.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      swipeDirection={['right', 'up']}
      className="rounded-lg border bg-surface shadow-high transition-opacity data-ending-style:opacity-0 data-starting-style:opacity-0"
    >
      <Toast.Content className="flex items-start gap-2.5 py-2.5 pr-1.5 pl-3.5">
        {toast.type === 'problem' ? (
          <CircleAlert className="mt-0.5 size-4 shrink-0 text-bad" aria-hidden />
        ) : (
          <CircleCheck className="mt-0.5 size-4 shrink-0 text-good" aria-hidden />
        )}
        <div className="min-w-0 grow">
          <Toast.Title className="font-medium" />
          <Toast.Description className="text-[13px] break-words text-muted" />
        </div>
        {/* Base UI hides the button from screen readers until the toasts unfold, while the keyboard can reach it. */}
        <Toast.Close
          aria-hidden={false}
          render={<IconButton label="Dismiss" icon={<X />} className="-my-1" />}
        />
      </Toast.Content>
    </Toast.Root>
  ));
}
