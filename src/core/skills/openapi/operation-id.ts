/** The name of a skill's operation in `/openapi.json?skills=1`, for generated clients. */
import type { Skill } from '../registry.ts';

/**
 * `textWordCount_v1_0`. It follows from the skill alone, so that other skills never change it, and two skills
 * never share one: `__` stands between category and name where camel case would not tell where the name begins.
 */
export function operationIdOf({
  category,
  name,
  version,
}: Pick<Skill, 'category' | 'name' | 'version'>): string {
  const isPlain = !category.includes('-') && /^[a-z]/.test(name);
  const words = isPlain ? camel(`${category}-${name}`) : `${camel(category)}__${camel(name)}`;
  return `${/^\d/.test(words) ? '_' : ''}${words}_${version.replace('.', '_')}`;
}

/** `sha-256` is `sha_256`, since `sha256` may be another skill. */
function camel(text: string): string {
  return text
    .replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
    .replaceAll('-', '_');
}
