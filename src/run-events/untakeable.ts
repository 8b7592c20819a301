/**
 * Events that no job can take any more, because all jobs of the organization that are older have ended. They
 * are not stored, and are deleted soon: by a background task, and at once where they stand in the way of a
 * new event. The horizon of an organization, before which all of its jobs have ended, is on record, so that
 * each job is passed once however many there are.
 */
import type { Database, Transaction } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { idFloor } from '../kernel/ids.ts';
import type { EventAddress } from './received.store.ts';
import {
  advanceHorizon,
  findEndedBefore,
  hasEventsBefore,
  pageOfOrganizations,
  removeEventsOfAddress,
  removeOldestEvents,
} from './untakeable.store.ts';

/** Jobs that one statement passes. */
const walked = 1_000;
/** Events that one transaction deletes. */
const deletedMax = 1_000;
/** Transactions for one organization in one run of the task; the next run goes on. */
const roundsMax = 20;
const organizationsMax = 100;
/** Longer than a transaction under way takes, and than the clocks of processes differ. */
const settledMs = 60_000;
/** Sorts after every id. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

interface Deps {
  readonly database: Database;
  readonly clock: Clock;
}

/**
 * Whether an event of now may be taken by a job; true also where more jobs have ended lately than are
 * looked at. A job that is not recorded yet was accepted later.
 */
export async function mayBeTaken(tx: Transaction, organizationId: string): Promise<boolean> {
  return (await findEndedBefore(tx, organizationId, walked)) !== null;
}

/** Deletes the events of an address that no job can take any more; how many. The caller has locked the address. */
export async function clearAddress(tx: Transaction, address: EventAddress): Promise<number> {
  const before = await findEndedBefore(tx, address.organization_id, walked);
  return removeEventsOfAddress(tx, address, before ?? lastId);
}

/**
 * Deletes events of an organization whose bound is reached: those that no job can take any more, else the
 * oldest of those that runs have taken. A bounded number; how many.
 */
export async function clearOrganization(tx: Transaction, organizationId: string): Promise<number> {
  const before = (await findEndedBefore(tx, organizationId, walked)) ?? lastId;
  const asked = { organization_id: organizationId, limit: deletedMax };
  const untaken = await removeOldestEvents(tx, { ...asked, taken: 0, before });
  if (untaken > 0) return untaken;
  return removeOldestEvents(tx, { ...asked, taken: 1, before: lastId });
}

/** Moves the horizons of all organizations that have events, and deletes the events before them. */
export async function removeUntakeable(deps: Deps): Promise<void> {
  const { read } = deps.database;
  let page = await pageOfOrganizations(read, '', organizationsMax);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    for (const { organization_id, horizon } of page) {
      await removeBefore(deps, organization_id, await moveHorizon(deps, organization_id, horizon));
    }
    page = await pageOfOrganizations(read, last.organization_id, organizationsMax);
  }
}

/**
 * The new horizon of an organization. Every job of before `settledMs` is recorded by now, so that a horizon
 * that lies before that stays true.
 */
async function moveHorizon(
  { database, clock }: Deps,
  organizationId: string,
  from: string | null,
): Promise<string> {
  const settled = idFloor(clock.now() - settledMs);
  let horizon = from ?? '';
  for (let round = 0; round < roundsMax; round += 1) {
    const before = (await findEndedBefore(database.read, organizationId, walked)) ?? settled;
    const next = before < settled ? before : settled;
    if (next <= horizon) break;
    const row = { organization_id: organizationId, job_id: next };
    await database.write((tx) => advanceHorizon(tx, row));
    horizon = next;
  }
  return horizon;
}

/** Deletes the events before a horizon. Most runs of the task find none, and write nothing. */
async function removeBefore({ database }: Deps, organizationId: string, before: string) {
  for (const taken of [0, 1] as const) {
    const asked = { organization_id: organizationId, taken, before };
    for (let round = 0; round < roundsMax; round += 1) {
      if (!(await hasEventsBefore(database.read, asked))) break;
      await database.write((tx) => removeOldestEvents(tx, { ...asked, limit: deletedMax }));
    }
  }
}
