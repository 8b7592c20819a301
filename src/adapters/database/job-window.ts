/** What bounds a list of jobs in time: ids, which begin with the time they were made at. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { idFloor } from '../../kernel/ids.ts';
import type { Handle } from './database.ts';

/** Milliseconds; jobs of these very moments are not meant. */
export interface Moments {
  created_after?: number | undefined;
  created_before?: number | undefined;
}

/** What jobs between two moments have to meet. */
export interface Window {
  /** Their ids, as far as an index of ids can tell. */
  readonly from: string | RawBuilder<string>;
  readonly to: string | null;
  /** What only their rows can tell. */
  readonly rows: readonly RawBuilder<SqlBool>[];
}

/**
 * The time that an id begins with is its job's, but for some milliseconds, and more where a clock was
 * set back: ids go on from the last. So many milliseconds of jobs are walked past in vain.
 */
const idsApartMs = 60_000;

/** The window between two moments; null where it leaves out no job of the organization. */
export async function windowBetween(
  db: Handle,
  organizationId: string,
  { created_after, created_before }: Moments,
): Promise<Window | null> {
  let from = '';
  let to: string | null = null;
  const rows: RawBuilder<SqlBool>[] = [];
  const endmost = async (end: 'asc' | 'desc') => {
    const jobs = db.kysely.selectFrom('jobs').where('organization_id', '=', organizationId);
    const job = await jobs.select('created_at').orderBy('id', end).limit(1).executeTakeFirst();
    return job?.created_at;
  };
  if (created_after !== undefined) {
    const oldest = await endmost('asc');
    if (oldest === undefined || created_after >= oldest - idsApartMs) {
      from = idFloor(created_after - idsApartMs);
      rows.push(sql<SqlBool>`jobs.created_at > ${created_after}`);
    }
  }
  if (created_before !== undefined) {
    const newest = await endmost('desc');
    if (newest === undefined || created_before <= newest + idsApartMs) {
      to = idFloor(created_before + idsApartMs);
      rows.push(sql<SqlBool>`jobs.created_at < ${created_before}`);
    }
  }
  return rows.length === 0 ? null : { from, to, rows };
}

/** That an id lies in the window, as far as an index can tell. */
export function hasIdWithin({ from, to }: Window): RawBuilder<SqlBool> {
  return to === null
    ? sql<SqlBool>`jobs.id >= ${from}`
    : sql<SqlBool>`jobs.id >= ${from} and jobs.id < ${to}`;
}

/** That a job lies in the window. */
export function isWithin(window: Window): RawBuilder<SqlBool> {
  return sql<SqlBool>`${hasIdWithin(window)} and ${sql.join(window.rows, sql` and `)}`;
}
