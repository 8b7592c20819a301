/** In the place of an action, or beside it, for a session that lacks scopes which the action needs. */
export function NeedsScope({ scopes, act }: { scopes: readonly string[]; act: string }) {
  return (
    <p role="note" className="min-w-0 text-xs text-muted">
      {act} needs the {scopes.length === 1 ? 'scope' : 'scopes'} {scopes.join(', ')}, which your API
      key lacks.
    </p>
  );
}
