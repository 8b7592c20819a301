/** The limits that a skill declares. Every fault is the end of a sentence that begins with the field's name. */
import { isObject } from '../../kernel/json.ts';
import type { LimitScope, SkillConcurrency } from './definition.ts';
import { checkInteger, mustBe, show } from './field-checks.ts';

/** A limit, with what the definition left out. */
export type SkillLimit = Required<SkillConcurrency>;

const limitScopes: readonly LimitScope[] = [
  'platform',
  'organization',
  'agent',
  'user',
  'key',
  'client-key',
];
const limitMax = 10_000;

/** The limits of a definition; none where it leaves them out. */
export function limitsOf(
  given: SkillConcurrency | readonly SkillConcurrency[],
): readonly SkillLimit[] {
  const limits = Array.isArray(given) ? (given as readonly SkillConcurrency[]) : [given];
  return (limits as readonly SkillConcurrency[]).map(({ limit, per = 'platform' }) => ({
    limit,
    per,
  }));
}

export function concurrencyFault(value: unknown): string | undefined {
  const limits: readonly unknown[] = Array.isArray(value) ? value : [value];
  const scopes = new Set<unknown>();
  for (const one of limits) {
    if (!isObject(one)) return mustBe('{ limit, per? }, or a list of them', one);
    const unknown = Object.keys(one).find((field) => field !== 'limit' && field !== 'per');
    if (unknown !== undefined) return `has the unknown field ${show(unknown)}`;
    const { limit, per = 'platform' } = one;
    const fault = checkInteger(limit, limitMax);
    if (fault !== undefined) return `limit ${fault}`;
    if (!limitScopes.includes(per as LimitScope)) {
      return `per ${mustBe(`one of ${limitScopes.join(', ')}`, per)}`;
    }
    if (scopes.has(per)) return `has two limits per ${String(per)}`;
    scopes.add(per);
  }
  return undefined;
}
