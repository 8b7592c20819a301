/**
 * The token limit of a tree of agents: an agent's job, the jobs of the agents that it gives tasks to, and so on. All
 * of them share the limit of one attempt, so delegation does not multiply the cost. Each call reserves its tokens,
 * as with a budget.
 */
import type { Handle } from '../../adapters/database/database.ts';
import { type BranchUse, type JobAndAgent, readTreeUse } from '../journal/agent-tree-queries.ts';
import type { BudgetState } from '../usage/reservation-rule.ts';

/** The share of the tokens for the agents below the root: the root needs the rest to report their results. */
const shareBelow = 0.8;
/** Of the tokens of all tasks that have not ended, the part that is held for the first one at work, so that it can finish. */
const shareOfFirst = 0.5;

/** The place of a job in a tree of agents. */
export interface TreePlace {
  readonly top: JobAndAgent;
  /** The job that the top has started, to which the job belongs: it or one above it. Null for the top. */
  readonly branch: string | null;
}

/** The place of the first job in its tree of agents. `jobs` is a job followed by its ancestors. */
export function placeInTree(jobs: readonly JobAndAgent[]): TreePlace | undefined {
  const index = jobs.findLastIndex(
    ({ agent_id }, i) => i > 0 && jobs[i - 1]?.agent_id !== agent_id,
  );
  const top = jobs[Math.max(0, index)];
  return top && { top, branch: jobs[index - 1]?.id ?? null };
}

/** The limit for a call of a job in the tree, which may use `treeTokensMax`, as a budget; empty while the tree has one agent only. */
export async function treeState(
  db: Handle,
  treeTokensMax: number,
  { top, branch }: TreePlace,
): Promise<BudgetState[]> {
  const branches = await readTreeUse(db, top);
  if (branches.length === 1) return [];
  const below = Math.floor(treeTokensMax * shareBelow);
  const owner = { kind: 'tree', id: top.id } as const;
  const sum = (some: readonly BranchUse[], what: 'used' | 'held') =>
    some.reduce((all, one) => all + one[what], 0);
  const used = sum(branches, 'used');
  const limit = branch === null ? treeTokensMax : below;
  const state = { owner, period: null, unit: 'tokens', limit, used } as const;
  const open = branches.filter(({ isOpen }) => isOpen);
  // One that is not at work, as it waits for a person, for example, would keep the others waiting for long.
  const first = open.find(({ isActive }) => isActive);
  // What the others have used is fixed while they wait for the open ones, and so is the share of the first one.
  const shared = below - used + sum(open, 'used');
  const kept =
    branch === null || first === undefined || first.branch === branch
      ? 0
      : Math.max(0, Math.floor(shared * shareOfFirst) - first.used - first.held);
  return [{ ...state, held: sum(branches, 'held') + kept }];
}
