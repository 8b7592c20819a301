/** Files that an output names: what `ctx.files.put` gives, wherever it stands in the output. */
import { isId } from '../../kernel/ids.ts';
import { isObject } from '../../kernel/json.ts';

/** Files of one output that count. */
const namedMax = 20;

/** The ids of the files that a JSON value names, each once, in its order. */
export function filesNamedIn(output: unknown): string[] {
  const ids = new Set<string>();
  collect(output, ids);
  return [...ids];
}

/** The files that a task names: the field `files` of an input that has a field for its task. */
export function filesOfInput(input: unknown, taskField: string | null): string[] {
  const { files } = taskField !== null && isObject(input) ? input : {};
  return Array.isArray(files) ? files.filter((one) => typeof one === 'string') : [];
}

function collect(value: unknown, ids: Set<string>): void {
  if (ids.size >= namedMax || value === null || typeof value !== 'object') return;
  if (isObject(value) && value['type'] === 'file') {
    const { id } = value;
    if (typeof id === 'string' && isId(id)) ids.add(id);
  }
  for (const inner of Object.values(value)) collect(inner, ids);
}
