import { Toast } from '@base-ui/react/toast';
import { IconButton } from './Button.tsx';
import { classes } from './classes.ts';
import { CircleAlert, CircleCheck, X } from './icons.tsx';
import { toasts } from './toast.ts';

/**
 * At the bottom, over the menu of a wide window, and over the end of the page on a phone, which scrolls clear of it:
 * what a page is about begins at its top. Phones show the newest alone.
 */
export function Toasts() {
  return (
    <Toast.Provider toastManager={toasts} limit={3}>
      <Toast.Portal>
        <Toast.Viewport className="fixed inset-x-3 bottom-3 z-60 flex flex-col-reverse gap-2 md:right-auto md:bottom-24 md:left-2 md:w-52">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List() {
  const { toasts: shown } = Toast.useToastManager();
  return shown.map((toast, i) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      swipeDirection={['down', 'left', 'right']}
      className={classes(
        'rounded-lg border bg-surface shadow-high transition-opacity data-ending-style:opacity-0 data-limited:hidden data-starting-style:opacity-0',
        i > 0 && 'max-md:hidden',
      )}
    >
      <Toast.Content className="grid grid-cols-[auto_minmax(0,1fr)_auto] gap-x-2 py-2 pr-1 pl-3">
        {toast.type === 'problem' ? (
          <CircleAlert className="mt-0.5 size-4 shrink-0 text-bad" aria-hidden />
        ) : (
          <CircleCheck className="mt-0.5 size-4 shrink-0 text-good" aria-hidden />
        )}
        <Toast.Title className="text-[13px] font-medium wrap-anywhere" />
        {/* Base UI hides the button from screen readers until the toasts unfold, while the keyboard can reach it. */}
        <Toast.Close
          aria-hidden={false}
          render={<IconButton label="Dismiss" icon={<X />} className="-my-1.5" />}
        />
        <Toast.Description className="col-span-full mt-1 max-h-40 overflow-y-auto pr-2 text-[13px] leading-snug wrap-anywhere text-muted" />
      </Toast.Content>
    </Toast.Root>
  ));
}
