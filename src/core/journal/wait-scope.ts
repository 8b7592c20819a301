/**
 * What a run is doing, as a tree: its questions, the skills that it calls, its requests to models with
 * their tools. A scope is blocked when something is open in it and all of that waits. A run that is blocked
 * can be unloaded, because nothing happens in it until one of its waits ends.
 */

export interface WaitScope {
  /** Opens a scope within this one. It is blocked only by what is opened in it. */
  open(): WaitScope;
  /** Adds something under way that does not wait; the function removes it. */
  work(): () => void;
  /** Adds a wait; the function removes it. */
  wait(): () => void;
  isBlocked(): boolean;
  /** Removes the scope, with all that is open in it. */
  close(): void;
}

interface Node {
  readonly outer: Node | null;
  readonly onChange: () => void;
  /** What is open in it, and how much of that is blocked. */
  open: number;
  blocked: number;
  isBlocked: boolean;
  isClosed: boolean;
}

/** The scope of a whole run; `onBlocked` is called whenever something changes while all of it waits. */
export function createWaitScope(onBlocked: () => void): WaitScope {
  const root: Node = newNode(null, () => {
    if (root.isBlocked) onBlocked();
  });
  return scopeOf(root);
}

function scopeOf(node: Node): WaitScope {
  return {
    open: () => scopeOf(add(node, false)),
    work: () => removal(add(node, false)),
    wait: () => removal(add(node, true)),
    isBlocked: () => node.isBlocked,
    close: removal(node),
  };
}

function newNode(outer: Node | null, onChange: () => void): Node {
  return { outer, onChange, open: 0, blocked: 0, isBlocked: false, isClosed: false };
}

function add(outer: Node, isWait: boolean): Node {
  const node = newNode(outer, outer.onChange);
  node.isBlocked = isWait;
  outer.open += 1;
  if (isWait) outer.blocked += 1;
  update(outer);
  node.onChange();
  return node;
}

function removal(node: Node): () => void {
  return () => {
    const { outer } = node;
    if (node.isClosed || outer === null) return;
    node.isClosed = true;
    outer.open -= 1;
    if (node.isBlocked) outer.blocked -= 1;
    update(outer);
    node.onChange();
  };
}

/** Brings `isBlocked` of a node, and of those around it, up to date. */
function update(node: Node): void {
  const isBlocked = node.open > 0 && node.open === node.blocked;
  if (isBlocked === node.isBlocked) return;
  node.isBlocked = isBlocked;
  const { outer } = node;
  if (outer === null || node.isClosed) return;
  outer.blocked += isBlocked ? 1 : -1;
  update(outer);
}
