/** Whether a claim holds its job. */
import type { Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import { statement } from '../../adapters/database/statement.ts';

const held = statement<{ id: string; epoch: number }>()((db, p, dialect) => {
  const query = db
    .selectFrom('jobs')
    .select('id')
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active');
  return locked(dialect, query, (unlocked) => unlocked.forShare());
});

/** Whether a claim still holds its job. If it does, it does until the transaction ends. */
export async function isHeld(
  tx: Transaction,
  { id, epoch }: { readonly id: string; readonly epoch: number },
): Promise<boolean> {
  return (await tx.first(held, { id, epoch })) !== undefined;
}
