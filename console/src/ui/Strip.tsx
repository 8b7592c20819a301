import type { ReactNode } from 'react';

/** The key facts of a resource: a few names with values below, side by side. */
export function Strip({
  facts,
}: {
  facts: readonly (readonly [name: string, value: ReactNode] | null | false)[];
}) {
  const shown = facts.filter((fact) => fact !== null && fact !== false);
  return (
    <dl className="flex flex-wrap gap-x-8 gap-y-3 text-[13px]">
      {shown.map(([name, value]) => (
        <div key={name} className="min-w-0">
          <dt className="text-xs text-muted">{name}</dt>
          <dd className="mt-0.5 font-medium wrap-anywhere tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
