/** How large a value is, for what is spent on it and for how many of its faults are collected. */

/** Levels of values, and of schemas and references, within one another. */
export const validationDepthMax = 1_000;
/** Members and items of a value whose faults are all collected; of a larger one, the first is named. */
export const allFaultsNodesMax = 2_000;

/** A value, or its way through a schema, has more levels than a validation follows. */
export class NestedTooDeeply extends Error {
  override readonly name = 'NestedTooDeeply';
}

/** The members and items of a value, where 16 characters count as one more. Linear. Throws NestedTooDeeply. */
export function nodesIn(value: unknown, level = 0): number {
  if (typeof value !== 'object' || value === null) return scalarNodes(value);
  if (level > validationDepthMax) throw new NestedTooDeeply();
  let nodes = 1;
  if (Array.isArray(value)) {
    for (const item of value) nodes += nodesIn(item, level + 1);
    return nodes;
  }
  for (const [name, member] of Object.entries(value)) {
    nodes += (name.length >> 4) + nodesIn(member, level + 1);
  }
  return nodes;
}

/** Whether a value has more than `max` members and items, however long its texts are; looks at few more than that. */
export function hasMoreMembers(value: unknown, max: number): boolean {
  const open: unknown[] = [value];
  let count = 0;
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node === null || typeof node !== 'object') continue;
    const members = Object.values(node);
    count += members.length;
    if (count > max) return true;
    for (const member of members) open.push(member);
  }
  return false;
}

export const scalarNodes = (value: unknown) =>
  typeof value === 'string' ? 1 + (value.length >> 4) : 1;
