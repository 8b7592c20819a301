/** An error of a run that running it again would not mend: the job ends with it, unless it is caught. */
export function refusal(message: string): Error {
  return Object.assign(new Error(message), { retryable: false });
}
