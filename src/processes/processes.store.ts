/** Every query on the processes of a cluster. */
import type { Handle, Transaction } from '../database/database.ts';
import { statement } from '../database/statement.ts';
import type { ProcessesTable } from '../database/tables.ts';

const beat = statement<ProcessesTable>()((db, p) =>
  db
    .insertInto('processes')
    .values({
      id: p('id'),
      roles: p('roles'),
      version: p('version'),
      skills: p('skills'),
      started_at: p('started_at'),
      seen_at: p('seen_at'),
      last_claim_at: p('last_claim_at'),
    })
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet({ seen_at: p('seen_at'), last_claim_at: p('last_claim_at') }),
    ),
);

/** Records that a process is there. */
export async function recordProcess(tx: Transaction, row: ProcessesTable): Promise<void> {
  await tx.each(beat, [row]);
}

const seenSince = statement<{ since: number }>()((db, p) =>
  db.selectFrom('processes').selectAll().where('seen_at', '>', p('since')),
);

export function findProcesses(db: Handle, since: number): Promise<ProcessesTable[]> {
  return db.all(seenSince, { since });
}

/** Forgets a process that has ended in order, and those not seen since `before`. */
export async function forgetProcesses(tx: Transaction, id: string, before: number): Promise<void> {
  await tx.kysely
    .deleteFrom('processes')
    .where((eb) => eb.or([eb('id', '=', id), eb('seen_at', '<', before)]))
    .execute();
}
