/** Many jobs for lists and pages to have: running each would take longer than what is tested. */
import type { Database } from '../../src/adapters/database/database.ts';
import { newId } from '../../src/kernel/ids.ts';

/** Adds copies of a job that has ended, newer than it, and counts them as the platform does. */
export async function copyJob(database: Database, id: string, copies: number): Promise<void> {
  const row = await database.read.kysely
    .selectFrom('jobs')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  await database.write(async (tx) => {
    await tx.insert(
      'jobs',
      Array.from({ length: copies }, () => ({ ...row, id: newId() })),
    );
    await tx.kysely
      .updateTable('job_counts')
      .set((eb) => ({ count: eb('count', '+', copies) }))
      .where('organization_id', '=', row.organization_id)
      .where('agent_id', '=', row.agent_id)
      .where('status', '=', row.status)
      .where('count', '>', 0)
      .execute();
  });
}
