/** The limits that a skill declares. Every fault is the end of a sentence that begins with the field's name. */
import { isObject } from '../../kernel/json.ts';
import type { LimitScope, SkillConcurrency, SkillRate } from './definition.ts';
import { checkInteger, mustBe, show } from './field-checks.ts';

/** A limit, with what the definition left out. */
export interface SkillLimit extends Required<SkillConcurrency> {
  /** Of starts within so many seconds; without it of runs at a time. */
  readonly perSeconds?: number;
  /** Of starts for a time after a refusal; none of the others. */
  readonly afterRefusal?: true;
}

/** Of whom runs are counted. */
export const limitScopes = [
  'platform',
  'organization',
  'agent',
  'user',
  'key',
  'client-key',
] as const satisfies readonly LimitScope[];
const limitMax = 10_000;
const startsMax = 1_000_000;
/** A day. */
const secondsMax = 86_400;

/** The limits of runs at a time of a definition; none where it leaves them out. */
export function limitsOf(
  given: SkillConcurrency | readonly SkillConcurrency[],
): readonly SkillLimit[] {
  return asList(given).map(({ limit, per = 'platform' }) => ({ limit, per }));
}

/** The limits of starts of a definition; none where it leaves them out. */
export function ratesOf(given: SkillRate | readonly SkillRate[]): readonly SkillLimit[] {
  return asList(given).map(({ limit, perSeconds, per = 'platform' }) => ({
    limit,
    per,
    perSeconds,
  }));
}

/** The limit of a skill that slows down after a refusal: any number, but while it is paused. */
export const afterRefusal: SkillLimit = {
  limit: Number.POSITIVE_INFINITY,
  per: 'platform',
  afterRefusal: true,
};

const asList = <T>(given: T | readonly T[]): readonly T[] =>
  Array.isArray(given) ? (given as readonly T[]) : [given as T];

export function concurrencyFault(value: unknown): string | undefined {
  const fault = limitsFault(value, '{ limit, per? }', { limit: limitMax });
  if (fault !== undefined) return fault;
  const repeated = repeatedOf(value, ({ per = 'platform' }) => `per ${String(per)}`);
  return repeated && `has two limits ${repeated}`;
}

export function rateFault(value: unknown): string | undefined {
  const counts = { limit: startsMax, perSeconds: secondsMax };
  const fault = limitsFault(value, '{ limit, perSeconds, per? }', counts);
  if (fault !== undefined) return fault;
  const repeated = repeatedOf(
    value,
    ({ perSeconds, per = 'platform' }) => `per ${String(per)} within ${String(perSeconds)} seconds`,
  );
  return repeated && `has two limits ${repeated}`;
}

/** The fault of a limit, or of a list of them. `counts` has the largest value of each of its numbers. */
function limitsFault(
  value: unknown,
  form: string,
  counts: Readonly<Record<string, number>>,
): string | undefined {
  const limits: readonly unknown[] = Array.isArray(value) ? value : [value];
  const fields = [...Object.keys(counts), 'per'];
  for (const one of limits) {
    if (!isObject(one)) return mustBe(`${form}, or a list of them`, one);
    const unknown = Object.keys(one).find((field) => !fields.includes(field));
    if (unknown !== undefined) return `has the unknown field ${show(unknown)}`;
    for (const [field, max] of Object.entries(counts)) {
      const fault = checkInteger(one[field], max);
      if (fault !== undefined) return `${field} ${fault}`;
    }
    const { per = 'platform' } = one;
    if (!limitScopes.includes(per as LimitScope)) {
      return `per ${mustBe(`one of ${limitScopes.join(', ')}`, per)}`;
    }
  }
  return undefined;
}

/** What two of the limits have in common, in words; undefined where all differ. */
function repeatedOf(
  value: unknown,
  wordsOf: (limit: Record<string, unknown>) => string,
): string | undefined {
  const words = asList<Record<string, unknown>>(value as Record<string, unknown>).map((one) =>
    wordsOf(one),
  );
  return words.find((one, i) => words.indexOf(one) < i);
}
