/** An error that a retry would not fix: unless the skill catches it, the job fails without a retry. */
export function permanentError(message: string): Error {
  return Object.assign(new Error(message), { retryable: false });
}
