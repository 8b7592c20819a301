/**
 * Schedules a refresh of a source whose service has reported that its tools have changed. Refreshes are at least
 * `againMs` apart, because a service may report it all the time.
 */
import { refreshSource } from './refresh.ts';
import type { RemoteSkills } from './state.ts';

/** Least time between the end of a refresh and the next one that the service asks for. */
const againMs = 30_000;

export function scheduleRefresh(remote: RemoteSkills, sourceId: string): void {
  const { refreshes, clock } = remote;
  // A refresh under way may itself cause the notification.
  if (refreshes.underWay.has(sourceId) || refreshes.scheduled.has(sourceId)) return;
  const before = refreshes.endedAt.get(sourceId) ?? Number.NEGATIVE_INFINITY;
  const waitMs = Math.max(0, before + againMs - clock.monotonic());
  const timer = setTimeout(() => {
    refreshes.scheduled.delete(sourceId);
    refreshSource(remote, sourceId).catch((err: unknown) => {
      remote.log.warn(
        { err, source: sourceId },
        'a remote source that has changed was not refreshed',
      );
    });
  }, waitMs).unref();
  refreshes.scheduled.set(sourceId, timer);
}
