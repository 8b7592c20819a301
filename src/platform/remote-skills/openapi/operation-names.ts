/** The names that operations have as skills: those of the document, in kebab case, and no two alike. */
import { createHash } from 'node:crypto';
import { normalized } from '../../../kernel/text.ts';

const nameCharsMax = 64;
const digestChars = 8;

export interface Named {
  /** `GET /pets/{petId}`. */
  readonly tool: string;
  readonly operationId: string | null;
}

/**
 * A name for each tool, by its tool. Depends on which operations there are and not on their order. Operations that
 * would share a name take theirs from method and path; those that would share that one too are numbered.
 */
export function nameOperations(operations: readonly Named[]): ReadonlyMap<string, string> {
  const sorted = operations.toSorted((a, b) => (a.tool < b.tool ? -1 : 1));
  const byName = Map.groupBy(sorted, (one) => kebab(one.operationId ?? '') ?? fromTool(one.tool));
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const give = (tool: string, base: string) => {
    let name = base;
    for (let n = 2; taken.has(name); n++) name = `${base.slice(0, nameCharsMax - 5)}-${n}`;
    taken.add(name);
    names.set(tool, name);
  };
  // Unique names first, so that no substitute takes one.
  for (const [name, [first, second]] of byName) {
    if (first !== undefined && second === undefined) give(first.tool, name);
  }
  for (const sharing of byName.values()) {
    if (sharing.length > 1) for (const { tool } of sharing) give(tool, fromTool(tool));
  }
  return names;
}

function fromTool(tool: string): string {
  const [method = '', path = ''] = tool.split(' ', 2);
  return kebab(`${method.toLowerCase()} ${path}`) ?? kebab(method) ?? 'operation';
}

/** Null where no letter or digit is left. A long name ends with a digest of all of it. */
function kebab(text: string): string | null {
  const name = normalized(text, 'NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
    .join('-');
  if (name === '') return null;
  if (name.length <= nameCharsMax) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, digestChars);
  return `${name.slice(0, nameCharsMax - digestChars - 1).replace(/-$/, '')}-${digest}`;
}
