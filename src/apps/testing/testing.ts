/**
 * `skillwright/testing`: runs one skill in the process of a test, with a script for everything outside of it.
 * Loads the platform's code for jobs, with its database in memory, and no server, queue, provider or other database.
 */
import type { SkillDefinition } from '../../core/skills/definition.ts';
import { loadDefinition } from './load-definition.ts';
import { runDefinition } from './run-definition.ts';
import type { RunSkillOptions, SkillRun } from './types.ts';

// biome-ignore lint/performance/noBarrelFile: the package's entrance for tests is this file alone.
export {
  type AskedApproval,
  type ModelAnswer,
  type RunError,
  type RunSkillOptions,
  type RunStep,
  ScriptError,
  type ScriptedDecision,
  type ScriptedEvent,
  type ScriptedSkill,
  type ScriptedToolCall,
  type SkillRun,
  type ToolResult,
} from './types.ts';

/**
 * Runs a skill, given by its definition or by the path of its module, as the platform does: its schemas check input
 * and output, its steps are recorded, its waits are skipped by a clock that stands still otherwise. Rejects with a
 * ScriptError where the script lacks an answer, and with an Error if the definition is invalid; a run that fails is
 * a result.
 */
export async function runSkill<Input, Output>(
  skill: SkillDefinition<Input, Output>,
  input: Input,
  options?: RunSkillOptions,
): Promise<SkillRun<Output>>;
export async function runSkill(
  skill: string | URL,
  input: unknown,
  options?: RunSkillOptions,
): Promise<SkillRun>;
export async function runSkill(
  skill: SkillDefinition | string | URL,
  input: unknown,
  options: RunSkillOptions = {},
): Promise<SkillRun> {
  return runDefinition(await loadDefinition(skill), input, options);
}
