/** Keys that a trigger takes from its calls: of its event, and of its jobs. */
import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import { invalid, invalidIn, PlatformError } from '../../kernel/errors.ts';
import { isLongerThan } from '../../kernel/step-bounds.ts';
import type { MappingContext } from './mapping-context.ts';
import type { TriggerRow } from './triggers.store.ts';

/** The key that a mapping gives for a call; `400` where it gives none of at most `max` characters. */
export async function evaluateKey(
  mappings: Expressions,
  { organization_id }: TriggerRow,
  {
    mapping,
    field,
    max,
  }: { readonly mapping: string; readonly field: string; readonly max: number },
  context: MappingContext,
): Promise<string> {
  const value = await withField(field, mappings.evaluate(organization_id, mapping, context));
  if (value === undefined) throw invalid(field, 'gives nothing for this request');
  const isText = typeof value === 'string' || typeof value === 'number';
  const key = isText ? String(value) : '';
  if (key === '' || isLongerThan(key, max)) {
    throw invalid(field, `must give text of 1 to ${max} characters, or a number`);
  }
  return key;
}

/** Reports a fault of the mapping under the field that contains the expression. */
export async function withField<T>(field: string, evaluated: Promise<T>): Promise<T> {
  try {
    return await evaluated;
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'validation_error') throw error;
    const details = error.extras.details ?? [];
    throw invalidIn(details.map(({ issue }) => ({ field, issue })));
  }
}
