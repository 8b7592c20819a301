import { type ReactNode, useState } from 'react';

/** Fields that few need. They are shown as soon as one of them `isNeeded`, such as for an error. */
export function Fold({
  label,
  isNeeded = false,
  children,
}: {
  label: string;
  isNeeded?: boolean;
  children: ReactNode;
}) {
  const [isOpen, setOpen] = useState(isNeeded);
  return (
    <details
      className="rounded-md border px-3 py-2"
      open={isOpen || isNeeded}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary className="text-[13px] font-medium">{label}</summary>
      <div className="flex flex-col gap-4 pt-3 pb-1">{children}</div>
    </details>
  );
}
