import { withDeadline } from '../../kernel/with-deadline.ts';

const closeMs = 1_500;

/** Waits for an answer of Redis, which may never come, for `closeMs` at most. */
export async function inTime(done: Promise<unknown>): Promise<void> {
  await withDeadline(
    done.catch(() => {}),
    closeMs,
  );
}
