/** The places that works take. */
import type { Transaction } from '../../../adapters/database/database.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Gate, Passing } from './gates.ts';

/** A gate without a limit gives no places. */
const hasPlaces = ({ limit }: Gate) => limit !== Number.POSITIVE_INFINITY;

/** Records places of works, or of the call with the number `n`, which was made within others. */
export async function takePlaces(
  tx: Transaction,
  passed: readonly Passing[],
  organizations: ReadonlyMap<string, string>,
  { n, within }: { readonly n: number; readonly within: string } = { n: 0, within: '' },
): Promise<void> {
  const rows = passed.flatMap(({ id, gates }) =>
    gates.filter(hasPlaces).map(({ name }) => ({
      gate: name,
      job_id: id,
      n,
      organization_id: organizations.get(id) ?? '',
      is_held: 1,
      within_calls: within,
      since: newId(),
    })),
  );
  if (rows.length > 0) await tx.insert('places', rows);
}
