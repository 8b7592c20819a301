/**
 * A service says that its tools have changed: they are looked at again, soon and not too often, because a service may say
 * so all the time. A look may make versions in quarantine, as each other look.
 */
import { refresh } from './refresh.ts';
import type { RemoteSkillsState } from './state.ts';

/** Least time between the looks at a source that it asks for. */
const againMs = 30_000;

export function noticeChange(state: RemoteSkillsState, sourceId: string): void {
  const { looking, lookedAt, noticed, clock } = state;
  // A look may make a service say so.
  if (looking.has(sourceId) || noticed.has(sourceId)) return;
  const before = lookedAt.get(sourceId) ?? Number.NEGATIVE_INFINITY;
  const waitMs = Math.max(0, before + againMs - clock.monotonic());
  const timer = setTimeout(() => {
    noticed.delete(sourceId);
    refresh(state, sourceId).catch((err: unknown) => {
      state.log.warn(
        { err, source: sourceId },
        'a remote source that has changed was not looked at',
      );
    });
  }, waitMs).unref();
  noticed.set(sourceId, timer);
}
