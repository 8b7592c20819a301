/**
 * The claimed row of each id, in the order of `ids`; null where the row was not claimed. Of two hints for
 * one row, the first gets the claim.
 */
export function claimOfEach<Row extends { readonly id: string }>(
  ids: readonly string[],
  claimed: readonly Row[],
): (Row | null)[] {
  const byId = new Map(claimed.map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = byId.get(id) ?? null;
    byId.delete(id);
    return row;
  });
}
