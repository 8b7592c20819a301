/** How long an attempt of a skill may take: as its definition says, or its input in a field that the definition names. */
import { dayMs } from '../../kernel/clock.ts';
import { objectOf, parsed } from '../../kernel/json.ts';
import { mustBe } from './field-checks.ts';

/** Most milliseconds that an input may give an attempt. */
const askedMsMax = dayMs;

interface Limited {
  readonly timeoutMs: number;
  readonly timeoutField: string | null;
}

/** Milliseconds that one attempt with this input, a JSON text, may take. */
export function timeLimitOf({ timeoutMs, timeoutField }: Limited, input: string): number {
  if (timeoutField === null) return timeoutMs;
  const asked = objectOf(parsed(input))?.[timeoutField];
  // The input may have been accepted when the skill had another definition.
  return isTimeLimit(asked) ? asked : timeoutMs;
}

/** The schema has to bound the field, so that no input can ask for more. */
export function checkTimeoutField(value: unknown, parameters: unknown): string | undefined {
  if (value === null) return undefined;
  const properties = objectOf(objectOf(parameters)?.['properties']) ?? {};
  const isField = typeof value === 'string' && Object.hasOwn(properties, value);
  const property = isField ? objectOf(properties[value]) : null;
  const isBounded = isTimeLimit(property?.['minimum']) && isTimeLimit(property?.['maximum']);
  if (property?.['type'] === 'integer' && isBounded) return undefined;
  const what = `with the type integer and with minimum and maximum from 1 to ${askedMsMax}`;
  return mustBe(`the name of a property of parameters ${what}`, value);
}

function isTimeLimit(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= askedMsMax;
}
