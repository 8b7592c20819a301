/**
 * Documents rot silently; this makes it loud. In README, ARCHITECTURE, CONTRIBUTING and docs/ it
 * checks that what is written as code and looks like a path of this repository exists, that every
 * `npm run x` is a script of package.json, and that every relative link leads somewhere, its
 * #heading included. A path may be given from the root, from src/ or from the document's folder, a
 * file also by its name alone; `<name>` and `*` stand for anything, and so does the file name `x`.
 * In sources it checks that the pages of docs/ that comments cite exist. Every page is in the menu of the site.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { sidebar } from '../docs/.vitepress/sidebar.ts';

export interface Fault {
  readonly line: number;
  readonly text: string;
}

/** What people and tools make as the program runs, so a clone does not have it. */
const madeLater =
  /^(\.\/)?(data|node_modules|coverage|dist|docs\/dist|my-skills|skills\.d\.ts)(\/|$)/;
const sourceFile = /\.(ts|mts|tsx|js|mjs|cjs|json|md|sh|sql|ya?ml)$/;
const placeholder = /^x\.[\w.]+$/;
/** A line that is a comment, or a part of one. */
const comment = /^\s*(?:\/\*|\*|\/\/)/;
const citedPage = /(?<![\w/.-])docs\/[\w/-]+\.md\b/g;
const pathLike = /^\.{0,2}\/?[\w@.*<>{},-]+(\/[\w@.*<>{},-]+)*\/?$/;

/** The faults of one document; `file` is relative to `root`. */
export function checkDocument(root: string, file: string, scripts: ReadonlySet<string>): Fault[] {
  const text = readFileSync(join(root, file), 'utf8');
  const faults: Fault[] = [];
  let fence = '';
  for (const [index, line] of text.split('\n').entries()) {
    const report = (fault: string) => faults.push({ line: index + 1, text: fault });
    const marker = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (marker !== undefined) {
      fence = fence === '' ? marker : line.trim() === fence ? '' : fence;
      continue;
    }
    for (const [, name = ''] of line.matchAll(/npm run ([\w:-]+)/g)) {
      if (!scripts.has(name)) report(`npm run ${name}: no such script`);
    }
    const code = fence === '' ? inlineCode(line) : line.split(/\s+/);
    for (const word of code.flatMap((piece) => piece.split(/\s+/))) {
      if (claimsAPath(root, word) && !leadsSomewhere(root, file, word))
        report(`${word}: no such path`);
    }
    if (fence !== '') continue;
    for (const [, target = ''] of line.matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)) {
      const fault = checkLink(root, file, target);
      if (fault !== undefined) report(fault);
    }
  }
  return faults;
}

/** The pages of docs/ that a source file cites in its comments and that do not exist. */
export function checkCitations(root: string, file: string): Fault[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.flatMap((line, index) =>
    comment.test(line)
      ? [...line.matchAll(citedPage)]
          .filter(([page]) => !existsSync(join(root, page)))
          .map(([page]) => ({ line: index + 1, text: `${page}: no such page` }))
      : [],
  );
}

function inlineCode(line: string): string[] {
  return [...line.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}

/** Whether a word of code means a file or folder of this repository. */
function claimsAPath(root: string, word: string): boolean {
  if (!pathLike.test(word) || madeLater.test(word) || placeholder.test(word)) return false;
  if (word.startsWith('/')) return false;
  const [first = ''] = word.replace(/^\.\//, '').split('/');
  const inRepository =
    word.includes('/') && !first.startsWith('.') && existsSync(join(root, first));
  return inRepository || (sourceFile.test(word) && !word.startsWith('.')) || word.startsWith('./');
}

function leadsSomewhere(root: string, file: string, word: string): boolean {
  const pattern = normalize(word)
    .replace(/<[^>]*>/g, '*')
    .replace(/\/$/, '');
  const isPattern = /[*{]/.test(pattern);
  if (!pattern.includes('/') && !isPattern && isSomewhere(root, pattern)) return true;
  return [root, join(root, 'src'), join(root, dirname(file))].some((folder) =>
    isPattern ? globSync(pattern, { cwd: folder }).length > 0 : existsSync(join(folder, pattern)),
  );
}

const nameOfAny = new Map<string, Set<string>>();

/** Whether any folder of the repository holds a file of this name. */
function isSomewhere(root: string, name: string): boolean {
  let names = nameOfAny.get(root);
  if (names === undefined) {
    const files = globSync('*/**', {
      cwd: root,
      exclude: (path) => /node_modules|data/.test(path),
    });
    names = new Set(files.map((file) => basename(file)));
    nameOfAny.set(root, names);
  }
  return names.has(name);
}

function checkLink(root: string, file: string, target: string): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
  const [path = '', heading] = target.split('#');
  const linked = path === '' ? file : join(dirname(file), decodeURI(path));
  if (!existsSync(join(root, linked))) return `${target}: the link leads nowhere`;
  if (heading === undefined || heading === '' || !linked.endsWith('.md')) return undefined;
  return headings(join(root, linked)).has(heading) ? undefined : `${target}: no such heading`;
}

/** The anchors that GitHub gives to a document's headings. */
function headings(path: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of readFileSync(path, 'utf8').matchAll(/^#{1,6}\s+(.+)$/gm)) {
    const anchor = anchorOf(title);
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n += 1) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The pages of docs/ that the menu of the site does not name. */
export function unlistedPages(documents: readonly string[]): string[] {
  const links = sidebar.flatMap(linksOf);
  return documents.filter((file) => {
    const page = /^docs(\/.*)\.md$/.exec(file)?.[1]?.replace(/(?<=\/)README$/, '');
    return page !== undefined && !links.includes(page);
  });
}

function linksOf({ link, items = [] }: (typeof sidebar)[number]): string[] {
  return [...(link === undefined ? [] : [link]), ...items.flatMap(linksOf)];
}

/** The anchor that GitHub gives to a heading, but for the number of a repeated one. */
export function anchorOf(title: string): string {
  const plain = title.trim().toLowerCase();
  return plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const documents = globSync(['{README,ARCHITECTURE,CONTRIBUTING,STYLE}.md', 'docs/**/*.md'], {
    cwd: root,
  }).sort();
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const scripts = new Set(Object.keys(manifest.scripts));
  const sources = globSync('{src,test,console/src}/**/*.{ts,tsx}', { cwd: root }).sort();
  const faults = [
    ...documents.flatMap((file) => inFile(file, checkDocument(root, file, scripts))),
    ...sources.flatMap((file) => inFile(file, checkCitations(root, file))),
    ...unlistedPages(documents).map((file) => `${file}  add it to docs/.vitepress/sidebar.ts`),
  ];
  for (const fault of faults) console.error(fault);
  if (faults.length === 0) console.log(`${documents.length} documents, all paths exist.`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

function inFile(file: string, faults: readonly Fault[]): string[] {
  return faults.map(({ line, text }) => `${file}:${line}  ${text}`);
}
