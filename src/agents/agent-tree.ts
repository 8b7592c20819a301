/**
 * The bound on the tokens of a tree of agents: the job of an agent, the jobs of the agents that it gives tasks to, and
 * so on. All of them together have the tokens of one attempt, so that many agents cannot use many times as
 * much. Each call reserves its part, as of a budget.
 */
import type { Handle } from '../database/database.ts';
import type { BudgetState } from '../usage/reservation-rule.ts';

/** A job and its agent. */
export interface JobAndAgent {
  readonly id: string;
  readonly agent_id: string;
}

/** What the tree knows of other slices. */
export interface TreeDeps {
  /** The most tokens of a tree. */
  readonly treeTokensMax: number;
  readTreeUse(
    db: Handle,
    top: JobAndAgent,
  ): Promise<{ readonly jobs: number; readonly used: number; readonly held: number }>;
}

/** The share of the tokens that agents below the first one may use: the first one has to say what came of it. */
const shareBelow = 0.8;

/** The job at the top of the tree of agents that the first of these jobs belongs to; each is below the next. */
export function topOf(jobs: readonly JobAndAgent[]): JobAndAgent | undefined {
  const top = jobs.findLastIndex(({ agent_id }, i) => i > 0 && jobs[i - 1]?.agent_id !== agent_id);
  return jobs[Math.max(0, top)];
}

/** The state of the bound for a call of a job in the tree; none while no other agent works in it. */
export async function treeState(
  { treeTokensMax, readTreeUse }: TreeDeps,
  db: Handle,
  top: JobAndAgent,
  jobId: string,
): Promise<BudgetState[]> {
  const { jobs, used, held } = await readTreeUse(db, top);
  if (jobs === 0) return [];
  const isTop = top.id === jobId;
  const limit = isTop ? treeTokensMax : Math.floor(treeTokensMax * shareBelow);
  return [{ owner: { kind: 'tree', id: top.id }, period: null, unit: 'tokens', limit, used, held }];
}
