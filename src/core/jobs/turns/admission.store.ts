/** The claim of jobs, and which of them it takes. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Transaction } from '../../../adapters/database/database.ts';
import { idInLocked } from '../../../adapters/database/ids-in.ts';
import { listOf, statement } from '../../../adapters/database/statement.ts';
import { mayHaveGates } from '../gates/held-jobs.store.ts';
import { type ClaimedJob, claimedColumns } from '../jobs.store.ts';

/** The last recorded report of a run, after which it goes on. Null where no other process can have recorded one. */
interface LastMessage {
  readonly last_message_id: string | null;
}

/** The clocks of processes differ, but a later message must have a later id. */
const lastMessage = (dialect: Dialect) =>
  dialect === 'sqlite'
    ? sql<string | null>`null`
    : sql<string | null>`(select id from messages where conversation_id = jobs.conversation_id
        order by id desc limit 1)`;

const ifQueued = <T>(queued: RawBuilder<T>, waiting: RawBuilder<T>) =>
  sql<T>`case when status = 'queued' then ${queued} else ${waiting} end`;

interface Claim {
  ids: readonly string[];
  /** Skills whose jobs it leaves out. */
  skills: readonly string[];
  now: number;
  due_by: number;
  lease_until: number;
  claimed_by: number;
}

const claimOf = (leavesOut: boolean) =>
  statement<Claim>()((db, p, dialect) =>
    db
      .updateTable('jobs')
      .set((eb) => ({
        status: 'active',
        // A job that has waited goes on with its attempt; one from the queue begins another.
        attempt: sql<number>`attempt + ${ifQueued(sql`1`, sql`0`)}`,
        epoch: eb('epoch', '+', 1),
        claimed_by: p('claimed_by'),
        begun: sql<number>`-1 - epoch`,
        started_at: ifQueued(
          dialect === 'sqlite'
            ? sql<number>`max(${p('now')}, run_at)`
            : sql<number>`greatest(${p('now')}::bigint, run_at)`,
          sql`started_at`,
        ),
        resumed_at: ifQueued(
          sql`null`,
          dialect === 'sqlite' ? p('now') : sql<number>`${p('now')}::bigint`,
        ),
        active_ms: ifQueued(sql`0`, sql`active_ms`),
        due_at: p('lease_until'),
        error: null,
        progress: ifQueued(sql`null`, sql`progress`),
      }))
      .where(
        idInLocked(
          dialect,
          listOf(p, 'ids'),
          'jobs',
          sql<SqlBool>`held_by is null ${leavesOut ? sql`and not ${mayHaveGates(dialect, listOf(p, 'skills'))}` : sql``}
          and ((status = 'queued' and run_at <= ${p('due_by')}
            and (expires_at is null or started_at is not null or expires_at > ${p('now')}))
          or (status = 'waiting' and due_at <= ${p('due_by')}))`,
          true,
        ),
      )
      .returning([...claimedColumns])
      .returning(lastMessage(dialect).as('last_message_id')),
  );
const claim = claimOf(false);
const claimOthers = claimOf(true);

/** By which process, and until when. */
interface JobsClaim {
  readonly by: number;
  readonly now: number;
  readonly leaseUntil: number;
  readonly dueBy?: number;
}

/**
 * Claims those of `ids` that are queued or waiting, due by `dueBy`, not held at a gate and not locked; the others are not
 * among the rows. A claimed job that had waited has a `resumed_at`. With `except`,
 * jobs that may have gates are left out; it names the skills that have limits: `category/version/name`.
 */
export function claimJobs(
  tx: Transaction,
  ids: readonly string[],
  { by, now, leaseUntil, dueBy = now }: JobsClaim,
  except: readonly string[] | null = null,
): Promise<(ClaimedJob & LastMessage)[]> {
  const times = { now, due_by: dueBy, lease_until: leaseUntil };
  const which = except === null ? claim : claimOthers;
  return tx.all(which, { ids, skills: except ?? [], claimed_by: by, ...times });
}
