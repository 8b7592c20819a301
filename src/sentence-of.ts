/** Faults that end a start or a command, as the operator is told of them. */

/** Which setting to look at, by the system call that failed. */
const settingsBehind: Readonly<Record<string, string>> = {
  getaddrinfo: 'HOST',
  listen: 'HOST and PORT',
  mkdir: 'DATA_DIR',
  open: 'DATA_DIR',
};

/** What went wrong, in one sentence for the operator. */
export function sentenceOf(error: unknown): string {
  const { message, code, syscall, cause } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `${message}: set PORT to a free port (0 takes any)`;
  if (code === 'service_unavailable') return `${message}: ${(cause as Error).message}`;
  if (code === 'ERR_SQLITE_ERROR') return `DATA_DIR: ${message}`;
  const setting = settingsBehind[syscall ?? ''];
  return setting === undefined ? (message ?? String(error)) : `${setting}: ${message}`;
}
