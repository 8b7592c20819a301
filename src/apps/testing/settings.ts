/** The settings of scripted runs: values of the test, else the defaults of the definition. */
import type { SkillDefinition } from '../../core/skills/definition.ts';
import type { RunSettings } from '../../core/skills/settings.ts';
import { isRequired } from '../../core/skills/settings-rules.ts';
import type { RunSkillOptions } from './types.ts';

/** The settings that a skill declares, or the names of required ones that the test leaves out. */
export function settingsOf(
  { config: given = {} }: RunSkillOptions,
  { config: declared }: Pick<SkillDefinition, 'config'>,
): RunSettings | { readonly missing: string } | undefined {
  const settings = Object.entries(declared ?? {});
  if (settings.length === 0) return undefined;
  const values: Record<string, string> = {};
  const missing: string[] = [];
  const secrets: string[] = [];
  for (const [name, setting] of settings) {
    const value = Object.hasOwn(given, name) ? given[name] : setting.default;
    if (value === undefined && isRequired(setting)) missing.push(name);
    if (value === undefined) continue;
    values[name] = value;
    if (setting.secret === true) secrets.push(value);
  }
  if (missing.length === 0) return { values, secrets };
  return {
    missing: `the skill needs ${missing.join(', ')}, and no value is given for it (config)`,
  };
}
