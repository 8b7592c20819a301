/** Errors that end a start or a command, as sentences for the operator. */

/** The setting to check, by the system call that failed. */
const settingsBehind: Readonly<Record<string, string>> = {
  getaddrinfo: 'HOST',
  listen: 'HOST and PORT',
  mkdir: 'DATA_DIR',
  open: 'DATA_DIR',
};

/** One sentence for the operator: what failed, and which setting to check. */
export function operatorMessage(error: unknown): string {
  const { message, code, syscall, cause } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `${message}: set PORT to a free port (0 takes any)`;
  if (code === 'service_unavailable') return `${message}: ${(cause as Error).message}`;
  if (code === 'ERR_SQLITE_ERROR') return `DATA_DIR: ${message}`;
  const setting = settingsBehind[syscall ?? ''];
  return setting === undefined ? (message ?? String(error)) : `${setting}: ${message}`;
}
