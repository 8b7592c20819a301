/** The model usage of a job's steps, each including the steps below it. No I/O. */
import type { JobStep } from '../api/jobs.ts';
import { moneyText } from '../ui/Money.ts';
import { countText } from '../ui/Time.tsx';

export interface StepUsage {
  readonly tokens: number;
  /** US dollars; null where no price is known. */
  readonly cost: number | null;
  /** Whether tokens or a price are unknown that belong to it. */
  readonly isPartial: boolean;
}

const none: StepUsage = { tokens: 0, cost: 0, isPartial: false };

/** By the number of the step; without the steps that asked no model. */
export function usageOfSteps(steps: readonly JobStep[]): ReadonlyMap<number, StepUsage> {
  const usages = new Map<number, StepUsage>();
  // A step comes after the one that caused it.
  for (const step of steps.toReversed()) {
    const own = ownUsage(step);
    const below = usages.get(step.step);
    const usage = own && below ? sum(own, below) : (own ?? below);
    if (usage === undefined) continue;
    usages.set(step.step, usage);
    if (step.parent_step_id === null) continue;
    usages.set(step.parent_step_id, sum(usages.get(step.parent_step_id) ?? none, usage));
  }
  return usages;
}

const sum = (a: StepUsage, b: StepUsage): StepUsage => ({
  tokens: a.tokens + b.tokens,
  cost: a.cost === null && b.cost === null ? null : (a.cost ?? 0) + (b.cost ?? 0),
  isPartial: a.isPartial || b.isPartial || a.cost === null || b.cost === null,
});

/** Of a job that the step started, its tokens are no part of this job's, but of what the step took. */
function ownUsage(step: JobStep): StepUsage | undefined {
  const { kind, status, prompt_tokens: prompt, completion_tokens: completion, waits_for } = step;
  if (kind === 'run') {
    const started = waits_for?.total_token_stats;
    if (started === undefined || started.total_tokens === 0) return undefined;
    const { total_tokens, cost_usd, cost_is_partial } = started;
    return {
      tokens: total_tokens ?? 0,
      cost: cost_usd ?? null,
      isPartial: total_tokens === null || cost_is_partial === true,
    };
  }
  if (kind !== 'model' && kind !== 'summary') return undefined;
  if (status === 'active') return undefined;
  return {
    tokens: (prompt ?? 0) + (completion ?? 0),
    cost: step.cost_usd,
    isPartial: prompt === null || completion === null,
  };
}

/** `1,234 tokens · $0.01`; an unknown cost is left out. */
export function usageText({ tokens, cost, isPartial }: StepUsage): string {
  const counted = `${countText(tokens)} tokens`;
  return cost === null || cost === 0 ? counted : `${counted} · ${moneyText(cost, isPartial)}`;
}
