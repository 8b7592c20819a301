/** What waits longer where processes share a queue and a database. */

export const clusterTimes = {
  /** How long the sweep leaves a due row to its first hint: any process may take it, which takes a while. */
  hintRetryMs: 2_000,
  /** The time that workers have to renew their leases once the database is back. */
  graceMs: 3_000,
  /** How long a job waits for the only worker that has loaded its skill to start again. */
  absentMs: 60_000,
  /** How far the clocks of two processes may differ: each measures the database's clock for itself. */
  clockSkewMs: 100,
};

/** None of them apply to an embedded platform. */
export type ClusterTimes = Partial<typeof clusterTimes>;
