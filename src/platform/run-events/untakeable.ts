/**
 * Events that no job can take any more, because all jobs of the organization that are older have ended. They
 * are not stored, and are deleted soon: by a background task, and at once where a new event needs their place. The
 * id of the oldest unended job decides about them, not a clock.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import {
  hasUntakeable,
  pageOfOrganizations,
  removeOldestTakenEvents,
  removeUntakeableEvents,
} from './untakeable.store.ts';

/** Events that one transaction deletes. */
const deletedMax = 1_000;
/** Transactions for one organization in one run of the task; the next run goes on. */
const roundsMax = 20;
const organizationsMax = 100;

/**
 * Deletes events of an organization whose bound is reached: those that no job can take any more, else the
 * oldest of those that runs have taken. Returns their number, which is bounded.
 */
export async function clearOrganization(tx: Transaction, organizationId: string): Promise<number> {
  const oldest = { organization_id: organizationId, limit: deletedMax };
  const untaken = await removeUntakeableEvents(tx, { ...oldest, taken: 0 });
  return untaken > 0 ? untaken : removeOldestTakenEvents(tx, oldest);
}

/** Deletes the events of all organizations that no job can take any more. */
export async function removeUntakeable(database: Database): Promise<void> {
  const { read } = database;
  let page = await pageOfOrganizations(read, '', organizationsMax);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    for (const { organization_id } of page) await removeOf(database, organization_id);
    page = await pageOfOrganizations(read, last.organization_id, organizationsMax);
  }
}

/** Most runs of the task find no such event, and write nothing. */
async function removeOf(database: Database, organizationId: string) {
  for (const taken of [0, 1] as const) {
    const oldest = { organization_id: organizationId, taken };
    for (let round = 0; round < roundsMax; round += 1) {
      if (!(await hasUntakeable(database.read, oldest))) break;
      await database.write((tx) => removeUntakeableEvents(tx, { ...oldest, limit: deletedMax }));
    }
  }
}
