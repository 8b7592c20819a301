/** The arguments of a tool's call, as a model wrote them. Pure. */
import { isObject } from '../../kernel/json.ts';
import { jsonTextFault } from '../../kernel/text.ts';

/** UTF-8 bytes of a call's arguments. */
const argumentsBytesMax = 262_144;

/** Parses the arguments of a call, which have to be a JSON object that every database can store. */
export function readArguments(
  input: string,
): { readonly value: Record<string, unknown> } | { readonly fault: string } {
  if (Buffer.byteLength(input) > argumentsBytesMax) {
    return { fault: `The arguments are too long: at most ${argumentsBytesMax / 1024} KiB` };
  }
  const json = input.trim() === '' ? '{}' : input;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return { fault: `The arguments are not valid JSON: ${(error as Error).message}` };
  }
  if (!isObject(value)) return { fault: 'The arguments must be a JSON object' };
  // Checks the original text: serializing it again could fail on its depth, and hides too large numbers.
  const fault = jsonTextFault(json);
  if (fault !== null) return { fault: `The JSON of the arguments ${fault}` };
  return { value };
}
