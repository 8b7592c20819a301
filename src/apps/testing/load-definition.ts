/** The definition that a test names, checked as the platform checks it when it loads. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SkillDefinition } from '../../core/skills/definition.ts';

/** Throws an Error that says what is wrong. The checks are loaded when the first definition is checked. */
export async function loadDefinition(
  skill: SkillDefinition | string | URL,
): Promise<SkillDefinition> {
  if (typeof skill === 'string' || skill instanceof URL) return loadFile(skill);
  const { skillFault } = await import('../../core/skills/fields.ts');
  const fault = skillFault(skill);
  if (fault !== undefined) throw new Error(`The definition of the skill is invalid: ${fault}`);
  await checkSchemas(skill);
  return skill;
}

/** Imported at its first use: most tests import the definition themselves. */
async function loadFile(skill: string | URL): Promise<SkillDefinition> {
  const { loadSkillModule } = await import('../../core/skills/sources/modules.ts');
  const file = skill instanceof URL || skill.startsWith('file:') ? fileURLToPath(skill) : skill;
  const module = await loadSkillModule(resolve(file));
  const definition = { ...module.skill, run: module.run };
  await checkSchemas(definition);
  return definition;
}

async function checkSchemas(skill: SkillDefinition): Promise<void> {
  const { ownSchemasFault } = await import('../../core/skills/own-schemas.ts');
  const fault = ownSchemasFault(skill);
  if (fault === undefined) return;
  throw new Error(`The definition of the skill is invalid: ${fault.message}`);
}
