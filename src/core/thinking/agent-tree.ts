/**
 * The token limit of a tree of agents: an agent's job, the jobs of the agents that it gives tasks to, and so on. All
 * of them share the limit of one attempt, so delegation does not multiply the cost. Each call reserves its tokens,
 * as with a budget.
 */
import type { Handle } from '../../adapters/database/database.ts';
import { type JobAndAgent, readTreeUse } from '../journal/agent-tree-queries.ts';
import type { BudgetState } from '../usage/reservation-rule.ts';

/** The share of the tokens for the agents below the root: the root needs the rest to report their results. */
const shareBelow = 0.8;

/** The root of the agent tree that the first job belongs to. `jobs` is a job followed by its ancestors. */
export function topOf(jobs: readonly JobAndAgent[]): JobAndAgent | undefined {
  const top = jobs.findLastIndex(({ agent_id }, i) => i > 0 && jobs[i - 1]?.agent_id !== agent_id);
  return jobs[Math.max(0, top)];
}

/** The limit for a call of a job in the tree, which may use `treeTokensMax`, as a budget; empty while the tree has one agent only. */
export async function treeState(
  db: Handle,
  treeTokensMax: number,
  top: JobAndAgent,
  jobId: string,
): Promise<BudgetState[]> {
  const { jobs, used, held } = await readTreeUse(db, top);
  if (jobs === 0) return [];
  const isTop = top.id === jobId;
  const limit = isTop ? treeTokensMax : Math.floor(treeTokensMax * shareBelow);
  return [{ owner: { kind: 'tree', id: top.id }, period: null, unit: 'tokens', limit, used, held }];
}
