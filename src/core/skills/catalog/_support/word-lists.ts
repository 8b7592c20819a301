/**
 * Finds the words and phrases of a list in a text, whole words alone and in any case. A text is read once, from word to word;
 * at each of them as many words are compared as the longest phrase has.
 */

/** What a list is looked up in, word by word. */
interface Branch {
  readonly next: Map<string, Branch>;
  /** The beginnings of words that are meant by a star at the end, shortest first. */
  readonly beginnings: Map<string, string>;
  /** The entry of the list that ends here. */
  entry: string | null;
}

/** Words of one phrase; the rest is left out. */
const phraseWordsMax = 20;
/** Characters of one word that are compared. */
const wordMax = 100;
const words = /[\p{L}\p{M}\p{N}_]+\*?/gu;

/** The first entry of the list that the text has; null where it has none. A star stands for any end of a word. */
export function findListed(text: string, list: readonly string[]): string | null {
  const root = treeOf(list);
  let open: Branch[] = [];
  for (const [word] of folded(text).matchAll(words)) {
    const token = (word.endsWith('*') ? word.slice(0, -1) : word).slice(0, wordMax);
    const following: Branch[] = [];
    for (const branch of [...open, root]) {
      const begun = beginningIn(branch, token);
      if (begun !== null) return begun;
      const next = branch.next.get(token);
      if (next === undefined) continue;
      if (next.entry !== null) return next.entry;
      following.push(next);
    }
    open = following;
  }
  return null;
}

function treeOf(list: readonly string[]): Branch {
  const root = emptyBranch();
  for (const entry of list) {
    const parts = Array.from(folded(entry).matchAll(words), ([word]) => word).slice(
      0,
      phraseWordsMax,
    );
    const last = parts.pop();
    if (last === undefined) continue;
    let branch = root;
    for (const part of parts) branch = branchOf(branch, part.replace('*', ''));
    if (last.endsWith('*')) branch.beginnings.set(last.slice(0, -1), entry);
    else branchOf(branch, last.slice(0, wordMax)).entry ??= entry;
  }
  return root;
}

function branchOf(branch: Branch, word: string): Branch {
  const known = branch.next.get(word);
  if (known !== undefined) return known;
  const made = emptyBranch();
  branch.next.set(word, made);
  return made;
}

const emptyBranch = (): Branch => ({ next: new Map(), beginnings: new Map(), entry: null });

function beginningIn({ beginnings }: Branch, word: string): string | null {
  if (beginnings.size === 0) return null;
  for (let length = 1; length <= word.length; length++) {
    const entry = beginnings.get(word.slice(0, length));
    if (entry !== undefined) return entry;
  }
  return null;
}

/** Compatibility forms are one: full-width letters are the letters. Invisible characters are no part of a word. */
function folded(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .toLowerCase();
}
