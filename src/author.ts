/**
 * What authors of skills import from `skillwright`: types and two small functions. Loads nothing of the
 * platform.
 */
// biome-ignore lint/performance/noBarrelFile: the package's entrance for authors is this file alone.
export {
  type Decision,
  type Duration,
  defineSkill,
  type Generated,
  type GenerateRequest,
  type JsonSchema,
  type LimitScope,
  type LogFields,
  type MapOptions,
  type Memory,
  type ReceivedEvent,
  type Recorded,
  type SkillConcurrency,
  type SkillConfig,
  type SkillConfigValues,
  type SkillContext,
  type SkillDefinition,
  SkillError,
  type SkillExample,
  type SkillFile,
  type SkillFiles,
  type SkillInput,
  type SkillMemory,
  type SkillOutput,
  type SkillSetting,
  type StepOptions,
  type StepRun,
} from './core/skills/definition.ts';
