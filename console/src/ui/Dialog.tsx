import { AlertDialog } from '@base-ui/react/alert-dialog';
import { Dialog as Base } from '@base-ui/react/dialog';
import { type ReactNode, useRef, useState } from 'react';
import { wordsOf } from '../api/client.ts';
import { Button, IconButton } from './Button.tsx';
import { classes } from './classes.ts';
import { X } from './icons.tsx';
import { Problem } from './Loading.tsx';

const backdrop =
  'fixed inset-0 z-40 bg-backdrop/45 transition-opacity data-ending-style:opacity-0 data-starting-style:opacity-0';
const popup =
  'fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col rounded-xl border bg-surface shadow-high transition data-ending-style:scale-98 data-ending-style:opacity-0 data-starting-style:scale-98 data-starting-style:opacity-0';

/**
 * A modal window for one task. Escape closes it, and so does a click outside unless it holds a form. The
 * first field of a form gets the focus, unless the device has no keyboard.
 */
export function Dialog({
  open,
  onClose,
  title,
  description,
  wide = false,
  isForm = false,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  wide?: boolean;
  /** A click outside does not close it, so that no input is lost. */
  isForm?: boolean;
  children: ReactNode;
}) {
  const content = useRef<HTMLDivElement>(null);
  return (
    <Base.Root
      open={open}
      onOpenChange={(isOpen) => !isOpen && onClose()}
      disablePointerDismissal={isForm}
    >
      <Base.Portal>
        <Base.Backdrop data-backdrop className={backdrop} />
        <Base.Popup
          className={classes(popup, wide ? 'max-w-3xl' : 'max-w-lg')}
          // A field that has the focus calls a phone's keyboard, over half of the form.
          initialFocus={() => (isForm && !isTouched.matches ? firstField(content.current) : true)}
        >
          <div className="flex items-start gap-3 border-b px-5 py-3.5">
            <div className="min-w-0 grow">
              <Base.Title className="text-base font-semibold">{title}</Base.Title>
              {description && (
                <Base.Description className="mt-0.5 text-[13px] text-muted">
                  {description}
                </Base.Description>
              )}
            </div>
            <Base.Close render={<IconButton label="Close" icon={<X />} className="-mr-2" />} />
          </div>
          <div ref={content} className="min-h-0 overflow-y-auto p-5">
            {children}
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

const isTouched = matchMedia('(pointer: coarse)');

const firstField = (content: HTMLElement | null): HTMLElement | null =>
  content?.querySelector<HTMLElement>('input, select, textarea') ?? null;

/**
 * Asks for confirmation before an action that cannot be undone. `act` runs it; after a failure the dialog
 * stays open and shows the error.
 */
export function Confirm({
  open,
  onClose,
  title,
  children,
  verb,
  keep = 'Keep it',
  act,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  /** The effects of the action. */
  children: ReactNode;
  /** The label of the button: `Delete`, `Revoke`. */
  verb: string;
  /** The label of the other button. */
  keep?: string;
  act: () => Promise<unknown>;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function confirm() {
    setBusy(true);
    setError(null);
    try {
      await act();
      onClose();
    } catch (caught) {
      setError(new Error(wordsOf(caught)));
    } finally {
      setBusy(false);
    }
  }
  return (
    <AlertDialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop data-backdrop className={backdrop} />
        <AlertDialog.Popup className={classes(popup, 'max-w-md p-5')}>
          <AlertDialog.Title className="text-base font-semibold">{title}</AlertDialog.Title>
          <AlertDialog.Description render={<div />} className="mt-2 leading-relaxed text-muted">
            {children}
          </AlertDialog.Description>
          {error !== null && (
            <div className="mt-4">
              <Problem error={error} />
            </div>
          )}
          <div className="mt-5 flex justify-end gap-2">
            <AlertDialog.Close render={<Button>{keep}</Button>} />
            <Button look="danger" busy={busy} onClick={() => void confirm()}>
              {verb}
            </Button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
