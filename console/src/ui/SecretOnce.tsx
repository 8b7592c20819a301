import { TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { CopyButton } from './Code.tsx';

/** A secret in the dialog of its making: nowhere else, and never again. */
export function SecretOnce({
  label,
  value,
  children,
}: {
  label: string;
  value: string;
  /** What to do with it. */
  children?: ReactNode;
}) {
  return (
    <div className="flex flex-col gap-3">
      <p className="flex items-start gap-2.5 rounded-md bg-warn-soft px-3.5 py-2.5 text-[13px] text-warn-text">
        <TriangleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
        <span>This is shown once. Copy it now: nobody can show it again.</span>
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
  );
}
