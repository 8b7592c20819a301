/** The order in which transactions lock the rows of scheduled jobs' last runs, wherever they do: so two of them never deadlock. */
export const inOrderOfSchedules = (
  a: { readonly scheduled_job_id: string },
  b: { readonly scheduled_job_id: string },
): number => (a.scheduled_job_id < b.scheduled_job_id ? -1 : 1);
