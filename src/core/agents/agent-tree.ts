/**
 * The token limit of a tree of agents: an agent's job, the jobs of the agents that it gives tasks to, and so on. All
 * of them share the limit of one attempt, so delegation does not multiply the cost. Each call reserves its tokens,
 * as with a budget.
 */
import type { Handle } from '../../adapters/database/database.ts';
import type { BudgetState } from '../usage/reservation-rule.ts';

/** A job and its agent. */
export interface JobAndAgent {
  readonly id: string;
  readonly agent_id: string;
}

/** The configuration, and the query on jobs. */
export interface TreeDeps {
  /** The most tokens of a tree. */
  readonly treeTokensMax: number;
  /** The job and those above it, from itself up: each agent pays for what it has another one do. */
  jobsAbove(db: Handle, jobId: string): Promise<readonly JobAndAgent[]>;
  readTreeUse(
    db: Handle,
    top: JobAndAgent,
  ): Promise<{ readonly jobs: number; readonly used: number; readonly held: number }>;
}

/** The share of the tokens for the agents below the root: the root needs the rest to report their results. */
const shareBelow = 0.8;

/** The root of the agent tree that the first job belongs to. `jobs` is a job followed by its ancestors. */
export function topOf(jobs: readonly JobAndAgent[]): JobAndAgent | undefined {
  const top = jobs.findLastIndex(({ agent_id }, i) => i > 0 && jobs[i - 1]?.agent_id !== agent_id);
  return jobs[Math.max(0, top)];
}

/** The limit for a call of a job in the tree, as a budget; empty while the tree has one agent only. */
export async function treeState(
  { treeTokensMax, readTreeUse }: Pick<TreeDeps, 'treeTokensMax' | 'readTreeUse'>,
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
