/** The part of a skill's definition that can be sent to another process: all but its code. */
import type { SkillDefinition } from './definition.ts';

export type SkillFacts = Omit<SkillDefinition, 'run'>;

/** The facts of a definition, with the defaults of what it leaves out. */
export function completeFacts(definition: SkillFacts): Required<SkillFacts> {
  const { category } = definition;
  return {
    category,
    name: definition.name,
    version: definition.version,
    displayName: definition.displayName,
    description: definition.description,
    parameters: definition.parameters,
    output: definition.output,
    requiredScopes: definition.requiredScopes ?? [category],
    timeoutMs: definition.timeoutMs ?? 60_000,
    maxAttempts: definition.maxAttempts ?? 3,
    examples: definition.examples ?? [],
    config: definition.config ?? {},
    continuesConversations: definition.continuesConversations ?? false,
    taskField: definition.taskField ?? null,
    answerField: definition.answerField ?? null,
    mcp: definition.mcp ?? null,
  };
}
