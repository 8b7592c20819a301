import type { ReactNode } from 'react';

/** An action, or in its place the scopes that the session lacks for it; nothing while they are not known (null). */
export function Permitted({
  missing,
  act,
  children,
}: {
  missing: readonly string[] | null;
  act: string;
  children: ReactNode;
}) {
  if (missing === null) return null;
  return missing.length > 0 ? <NeedsScope scopes={missing} act={act} /> : children;
}

/** In the place of an action, or beside it, for a session that lacks scopes which the action needs. */
export function NeedsScope({ scopes, act }: { scopes: readonly string[]; act: string }) {
  return (
    <p role="note" className="min-w-0 text-xs text-muted">
      {act} needs the {scopes.length === 1 ? 'scope' : 'scopes'} {scopes.join(', ')}, which your API
      key lacks.
    </p>
  );
}
