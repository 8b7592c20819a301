import { type ReactNode, useState } from 'react';
import { Button } from './Button.tsx';
import { CopyButton } from './Code.tsx';
import { Confirm, Dialog } from './Dialog.tsx';
import { TriangleAlert } from './icons.tsx';

/**
 * Shows a new secret in the dialog that made it, once. Closing the dialog without confirming that the
 * secret is saved asks first.
 */
export function SecretOnce({
  title,
  description,
  wide = false,
  label,
  value,
  lost,
  onClose,
  children,
}: {
  title: string;
  description?: ReactNode;
  wide?: boolean;
  /** What it is: `API key`. */
  label: string;
  value: string;
  /** What is to be done without it, in a sentence. */
  lost: string;
  onClose: () => void;
  /** What to do with it. */
  children?: ReactNode;
}) {
  const [isLeaving, setLeaving] = useState(false);
  return (
    <>
      <Dialog
        open
        onClose={() => setLeaving(true)}
        wide={wide}
        title={title}
        description={description}
      >
        <div className="flex flex-col gap-3">
          <p className="flex items-start gap-2.5 rounded-md bg-warn-soft px-3.5 py-2.5 text-[13px] text-warn-text">
            <TriangleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
            <span>This is shown only once. Copy it now.</span>
          </p>
          <div>
            <p className="mb-1.5 text-[13px] font-medium">{label}</p>
            <div className="flex items-start gap-1 rounded-md border bg-sunken p-1 pl-3">
              <code className="min-w-0 grow py-1.5 font-mono text-xs leading-relaxed break-all select-all">
                {value}
              </code>
              <CopyButton text={value} label={`Copy ${label.toLowerCase()}`} />
            </div>
          </div>
          {children}
        </div>
        <div className="mt-5 flex justify-end">
          <Button look="primary" onClick={onClose}>
            I have copied it
          </Button>
        </div>
      </Dialog>
      <Confirm
        open={isLeaving}
        onClose={() => setLeaving(false)}
        title="Have you copied it?"
        verb="Close it"
        keep="Go back"
        act={async () => onClose()}
      >
        It is not shown again. {lost}
      </Confirm>
    </>
  );
}
