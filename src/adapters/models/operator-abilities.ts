/** The abilities that an operator sets, as `MODEL_ABILITIES` has them: JSON, or the path of a file with it. Pure. */
import { isObject, type Json } from '../../kernel/json.ts';
import type { OperatorAbilities } from './known-models.ts';
import { efforts } from './model.ts';
import { type Abilities, temperatureRules, thinkingForms } from './model-table.ts';

const entriesMax = 10_000;
const tokensMax = 100_000_000;

/** Of each field: its name in `Abilities`, what it needs, and whether a value is that. */
type Field = readonly [keyof Abilities, string, (value: unknown) => boolean];

const isBoolean = (value: unknown) => typeof value === 'boolean';
const isTokens = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 16 && Number(value) <= tokensMax;
const isOneOf = (values: readonly string[]) => (value: unknown) =>
  values.some((one) => one === value);
const isEffort = isOneOf(efforts);

const fields: ReadonlyMap<string, Field> = new Map<string, Field>([
  ['context_tokens', ['contextTokens', 'a number of tokens', isTokens]],
  ['output_tokens', ['outputTokens', 'a number of tokens', isTokens]],
  [
    'efforts',
    [
      'efforts',
      `a list of ${efforts.join(', ')}`,
      (value) => Array.isArray(value) && value.every(isEffort),
    ],
  ],
  [
    'temperature',
    ['temperature', `one of ${temperatureRules.join(', ')}`, isOneOf(temperatureRules)],
  ],
  ['thinking', ['thinking', `one of ${thinkingForms.join(', ')}`, isOneOf(thinkingForms)]],
  ['reasons', ['reasons', 'true or false', isBoolean]],
  ['tools', ['tools', 'true or false', isBoolean]],
  ['images', ['images', 'true or false', isBoolean]],
  ['schema', ['schema', 'true or false', isBoolean]],
]);

/** The abilities, or the fault of the text. */
export function readOperatorAbilities(
  text: string,
): { readonly models: readonly OperatorAbilities[] } | { readonly fault: string } {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    return { fault: `it is not JSON: ${(error as Error).message}` };
  }
  if (!Array.isArray(list)) return { fault: 'it is not a list of models' };
  if (list.length > entriesMax) return { fault: `it has more than ${entriesMax} models` };
  const models: OperatorAbilities[] = [];
  for (const [i, entry] of list.entries()) {
    const fault = faultOf(entry);
    if (fault !== null) return { fault: `the model ${i + 1} ${fault}` };
    models.push(abilitiesOf(entry));
  }
  return { models };
}

function faultOf(entry: unknown): string | null {
  if (!isObject(entry)) return 'is not an object';
  const { model, ...rest } = entry;
  if (typeof model !== 'string' || !/^[a-z][a-z0-9-]*\/[^\s*]*\*?$/.test(model)) {
    return 'needs a model, as provider/model or provider/*';
  }
  for (const [name, value] of Object.entries(rest)) {
    const field = fields.get(name);
    if (field === undefined) return `has a field ${name}, which there is not`;
    const [, needs, isValid] = field;
    if (!isValid(value)) return `needs ${name} to be ${needs}`;
  }
  return null;
}

function abilitiesOf({ model, ...rest }: Json): OperatorAbilities {
  const abilities: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(rest))
    abilities[fields.get(name)?.[0] ?? name] = value;
  return { model: model as string, abilities };
}
