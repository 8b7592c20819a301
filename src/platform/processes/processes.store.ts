/** Every query on the processes of a cluster. */
import type { Transaction } from '../../adapters/database/database.ts';
import { allRows, statement } from '../../adapters/database/statement.ts';
import type { ProcessesTable } from '../../adapters/database/tables.ts';

const beat = statement<ProcessesTable>()((db, p) =>
  db
    .insertInto('processes')
    .values({
      id: p('id'),
      roles: p('roles'),
      version: p('version'),
      skills: p('skills'),
      capabilities: p('capabilities'),
      slots: p('slots'),
      started_at: p('started_at'),
      seen_at: p('seen_at'),
      last_claim_at: p('last_claim_at'),
      last_job_at: p('last_job_at'),
    })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({
        skills: p('skills'),
        slots: p('slots'),
        seen_at: p('seen_at'),
        last_claim_at: p('last_claim_at'),
        last_job_at: p('last_job_at'),
      }),
    ),
);

/** Records a heartbeat. */
export async function recordProcess(tx: Transaction, row: ProcessesTable): Promise<void> {
  await tx.each(beat, [row]);
}

export const findProcesses = allRows<{ since: number }>()((db, p) =>
  db.selectFrom('processes').selectAll().where('seen_at', '>', p('since')),
);

export async function forgetProcess(tx: Transaction, id: string): Promise<void> {
  await tx.kysely.deleteFrom('processes').where('id', '=', id).execute();
}

/** Deletes the processes without a heartbeat since `before`. */
export async function forgetProcessesBefore(tx: Transaction, before: number): Promise<void> {
  await tx.kysely.deleteFrom('processes').where('seen_at', '<', before).execute();
}
