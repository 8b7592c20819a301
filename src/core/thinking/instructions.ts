/**
 * The instructions of a run's agent, filled with their values at the first call of its model. The job keeps these values,
 * recorded with that call, so that later turns, repeated attempts and runs that were unloaded send the same system text.
 */
import type { AgentRow } from '../agents/agent-rows.ts';
import { variablesOf } from '../agents/agent-rows.ts';
import {
  type FilledInstructions,
  fillInstructions,
  type InstructionValues,
  namesIn,
  valuesOf,
} from '../agents/instruction-values.ts';
import type { ThinkingAttempt } from './attempt.ts';

/** The filled instructions. Keeps the values in the attempt, which records them with its next call. */
export function instructionsOf(attempt: ThinkingAttempt, agent: AgentRow): FilledInstructions {
  const { instructions, name: agentName } = agent;
  const variables = variablesOf(agent);
  const names = namesIn(instructions, variables);
  if (names.size === 0) return { text: instructions, end: '' };
  const { job } = attempt.run;
  const kept = readValues(job.instruction_values);
  const sources = { agentName, variables, userId: job.user_id, userName: kept['user.name'] };
  const now = attempt.parts.context.clock.now();
  attempt.values = { ...valuesOf(names, { ...sources, now }), ...kept, ...attempt.values };
  const used = Object.entries(attempt.values).filter(([one]) => names.has(one));
  return fillInstructions(instructions, Object.fromEntries(used));
}

/** The values that a job keeps, as recorded before this claim. */
export function readValues(values: string | null): InstructionValues {
  return values === null ? {} : (JSON.parse(values) as InstructionValues);
}
