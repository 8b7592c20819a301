/** A listening socket that a process inherits, as systemd passes it (`sd_listen_fds(3)`) and `start --replace` too. */

const firstFd = 3;

/** Its file descriptor; null where none was passed to this process. */
export function inheritedListener(
  { LISTEN_FDS: count, LISTEN_PID: pid }: Readonly<Record<string, string | undefined>>,
  ownPid: number,
): number | null {
  if (count === undefined || !(Number(count) >= 1)) return null;
  if (pid !== undefined && Number(pid) !== ownPid) return null;
  return firstFd;
}
