/** The definition that a test names, checked as the platform checks it when it loads. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkSchema } from '../kernel/json-schema.ts';
import { SchemaError } from '../kernel/schema-rules.ts';
import type { SkillDefinition } from '../skills/definition.ts';
import { skillFault } from '../skills/fields.ts';

/** Throws an Error that says what is wrong. */
export async function loadDefinition(
  skill: SkillDefinition | string | URL,
): Promise<SkillDefinition> {
  if (typeof skill === 'string' || skill instanceof URL) return loadFile(skill);
  const fault = skillFault(skill);
  if (fault !== undefined) throw new Error(`The definition of the skill is invalid: ${fault}`);
  checkSchemas(skill);
  return skill;
}

/** Imported at its first use: most tests import the definition themselves. */
async function loadFile(skill: string | URL): Promise<SkillDefinition> {
  const { loadSkillModule } = await import('../skills/sources/modules.ts');
  const file = skill instanceof URL || skill.startsWith('file:') ? fileURLToPath(skill) : skill;
  const module = await loadSkillModule(resolve(file));
  const definition = { ...module.skill, run: module.run };
  checkSchemas(definition);
  return definition;
}

function checkSchemas(skill: SkillDefinition): void {
  for (const field of ['parameters', 'output'] as const) {
    try {
      checkSchema(skill[field]);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      throw new Error(`The definition of the skill is invalid: ${field} ${error.message}`);
    }
  }
}
