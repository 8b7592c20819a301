/** Shows what differs between two versions of a remote skill, as lines with + and -. */
import { canonicalJson, cleanText } from '../../kernel/text.ts';
import type { RemoteDefinition } from './definitions.ts';

const differenceCharsMax = 32_768;
/** Of the comparison, which takes the square of the lines that differ: some hundred milliseconds at most. */
const editsMax = 500;

/** The library is loaded at the first difference, so a platform without remote skills pays nothing. */
export async function differenceOf(
  before: RemoteDefinition,
  after: RemoteDefinition,
): Promise<string> {
  const { createTwoFilesPatch } = await import('diff');
  const options = { context: 2, maxEditLength: editsMax };
  const patch = createTwoFilesPatch(
    'accepted',
    'new',
    textOf(before),
    textOf(after),
    undefined,
    undefined,
    options,
  );
  const text = cleanText(patch ?? 'The two differ too much to be compared line by line.');
  return text.length <= differenceCharsMax
    ? text
    : `${text.slice(0, differenceCharsMax)}\n… (shortened)`;
}

/** Readable, and the same for equal definitions. */
function textOf({ title, description, input, output, request }: RemoteDefinition): string {
  const schema = (value: unknown) => JSON.stringify(JSON.parse(canonicalJson(value)), null, 2);
  const parts = [
    `title: ${title ?? ''}`,
    `description: ${description}`,
    `input: ${schema(input)}`,
    `output: ${schema(output)}`,
    ...(request === undefined ? [] : [`request: ${schema(request)}`]),
  ];
  return `${parts.join('\n')}\n`;
}
