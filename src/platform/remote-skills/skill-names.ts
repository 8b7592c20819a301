/** The names that tools of a service have as skills. */
import { normalized } from '../../kernel/text.ts';
import type { LeftOutTool } from './remote-kind.ts';

const nameCharsMax = 64;
/** Characters of a tool's name that are read: a longer one has no name of a skill. */
const toolCharsMax = 1_000;

/** A tool's name in kebab case; null where nothing of it is left. */
function skillNameOf(tool: string): string | null {
  if (tool.length > toolCharsMax) return null;
  const words = normalized(tool, 'NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  const name = words.join('-');
  return name === '' || name.length > nameCharsMax ? null : name;
}

/** The tools by the names of their skills. Tools that would share one are all left out. */
export function nameTools<T extends { readonly tool: string; readonly skillName?: string }>(
  tools: readonly T[],
): { named: ReadonlyMap<string, T>; leftOut: LeftOutTool[] } {
  const byName = new Map<string, T[]>();
  const leftOut: LeftOutTool[] = [];
  for (const tool of tools) {
    const name = tool.skillName ?? skillNameOf(tool.tool);
    if (name === null) {
      const reason = `The name ${JSON.stringify(tool.tool)} cannot become that of a skill: 1 to ${nameCharsMax} letters and digits`;
      leftOut.push({ tool: tool.tool, reason });
    } else byName.set(name, [...(byName.get(name) ?? []), tool]);
  }
  const named = new Map<string, T>();
  for (const [name, sharing] of byName) {
    const [first] = sharing;
    if (sharing.length === 1 && first !== undefined) {
      named.set(name, first);
      continue;
    }
    const names = sharing.slice(0, 5).map(({ tool }) => tool);
    const reason = `${sharing.length} tools would be the skill ${name}: ${names.join(', ')}`;
    for (const { tool } of sharing) leftOut.push({ tool, reason });
  }
  return { named, leftOut };
}
