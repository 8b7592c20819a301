/**
 * What the type checker says of the sources: calls that end at a signature instead of code, and the sizes of what there
 * is. It uses the API of TypeScript 7 that is marked as unstable: an update of TypeScript may have to change this file.
 */
import { join, relative } from 'node:path';
import {
  type CallExpression,
  isCallExpression,
  isFunctionDeclaration,
  isFunctionLikeDeclaration,
  isIdentifier,
  isInterfaceDeclaration,
  isObjectLiteralExpression,
  isPropertyAccessExpression,
  isSpreadAssignment,
  isTypeAliasDeclaration,
  isTypeReferenceNode,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { API, type Checker } from 'typescript/unstable/sync';
import { ports } from './ports.ts';

/** So many nodes are sent to the checker at a time. */
const batchSize = 2_000;

/** A file of the product, and what stands in it. */
export interface SourceFileMeasures {
  readonly path: string;
  readonly lines: number;
  /** Lines with code: no comment, not blank. */
  readonly code: number;
  /** Lines of each function with a name of its own. */
  readonly functions: readonly number[];
  readonly calls: readonly CallExpression[];
  readonly deps: number;
  readonly picks: number;
  readonly spreads: number;
  /** Names of functions `createX`, and of interfaces and types. */
  readonly factories: readonly string[];
  readonly types: readonly string[];
}

/** A call that ends at a signature: where it stands, and where it ends. */
export interface LostCall {
  readonly path: string;
  /** As `file: Interface.member`. */
  readonly declaration: string;
}

export interface SourceMeasures {
  readonly files: readonly SourceFileMeasures[];
  /** At members of interfaces and type literals that are no ports. */
  readonly lost: readonly LostCall[];
  /** At members of object literals, which factories return. */
  readonly atLiterals: readonly LostCall[];
  /** Functions named `createX` that the product calls at one place at most. */
  readonly factoriesCalledOnce: number;
  /** Ports that are not declared. */
  readonly unknownPorts: readonly string[];
}

/** Measures the files of `src` that are no tests. */
export function measureSources(root: string): SourceMeasures {
  const api = new API({ cwd: root });
  try {
    const config = join(root, 'tsconfig.json');
    const [project] = api.updateSnapshot({ openProjects: [config] }).getProjects();
    if (project === undefined) throw new Error(`TypeScript does not find ${config}`);
    const { checker, program } = project;
    const files = program
      .getSourceFileNames()
      .filter((name) => name.startsWith(join(root, 'src/')) && !name.endsWith('.test.ts'))
      .map((name) => readFile(relative(root, name), program.getSourceFile(name) as SourceFile));
    const types = new Set(files.flatMap((file) => file.types));
    return {
      files,
      ...followCalls(root, checker, files),
      factoriesCalledOnce: countFactoriesCalledOnce(files),
      unknownPorts: Object.keys(ports).filter((name) => !types.has(name)),
    };
  } finally {
    api.close();
  }
}

function readFile(path: string, source: SourceFile): SourceFileMeasures {
  const calls: CallExpression[] = [];
  const functions: number[] = [];
  const factories: string[] = [];
  const types: string[] = [];
  const leaves: Node[] = [];
  const count = { deps: 0, picks: 0, spreads: 0 };
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const visit = (node: Node): void => {
    if (isCallExpression(node)) calls.push(node);
    if (isInterfaceDeclaration(node) || isTypeAliasDeclaration(node)) types.push(node.name.text);
    if (isInterfaceDeclaration(node) && node.name.text.endsWith('Deps')) count.deps += 1;
    if (isTypeReferenceNode(node) && node.typeName.getText(source) === 'Pick') count.picks += 1;
    if (isSpreadAssignment(node) && isObjectLiteralExpression(node.expression)) count.spreads += 1;
    if (isFunctionLikeDeclaration(node) && hasOwnName(node) && node.body !== undefined) {
      functions.push(lineOf(node.end) - lineOf(node.getStart(source)) + 1);
    }
    if (isFunctionDeclaration(node) && /^create[A-Z]/.test(node.name?.text ?? '')) {
      factories.push(node.name?.text ?? '');
    }
    let isLeaf = true;
    node.forEachChild((child) => {
      isLeaf = false;
      visit(child);
    });
    if (isLeaf) leaves.push(node);
  };
  visit(source);
  const lines = source.text.split('\n').length - 1;
  return {
    path,
    lines,
    code: countCode(source, leaves),
    functions,
    calls,
    factories,
    types,
    deps: count.deps,
    picks: count.picks,
    spreads: count.spreads,
  };
}

function hasOwnName({ kind }: Node): boolean {
  return [
    SyntaxKind.FunctionDeclaration,
    SyntaxKind.MethodDeclaration,
    SyntaxKind.Constructor,
  ].includes(kind);
}

/** The lines with code. Comments stand only between the leaves of the tree, where no text of a program can look like one. */
function countCode(source: SourceFile, leaves: readonly Node[]): number {
  let code = '';
  let end = 0;
  for (const leaf of leaves) {
    const start = Math.max(leaf.getStart(source), end);
    code += withoutComments(source.text.slice(end, start)) + source.text.slice(start, leaf.end);
    end = Math.max(leaf.end, end);
  }
  code += withoutComments(source.text.slice(end));
  return code.split('\n').filter((line) => line.trim() !== '').length;
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, (comment) => comment.replace(/[^\n]/g, ''));
}

/** Goes from each call to its declaration, as an editor does. */
function followCalls(root: string, checker: Checker, files: readonly SourceFileMeasures[]) {
  const calls = files.flatMap(({ path, calls }) => calls.map((call) => ({ path, call })));
  const lost: LostCall[] = [];
  const atLiterals: LostCall[] = [];
  for (let i = 0; i < calls.length; i += batchSize) {
    const batch = calls.slice(i, i + batchSize);
    const symbols = checker.getSymbolAtLocation(batch.map(({ call }) => calleeOf(call)));
    for (const [j, symbol] of symbols.entries()) {
      const { path, call } = batch[j] as (typeof batch)[number];
      let handle = symbol?.declarations?.[0];
      // Of a destructured parameter: where the signature stands.
      if (handle?.kind === SyntaxKind.BindingElement) {
        handle = checker.getResolvedSignature(call)?.declaration;
      }
      if (handle === undefined || !handle.path.startsWith(join(root, 'src/'))) continue;
      const file = relative(root, handle.path);
      const isLiteral = [SyntaxKind.ShorthandPropertyAssignment, SyntaxKind.PropertyAssignment];
      if (isLiteral.includes(handle.kind)) {
        atLiterals.push({ path, declaration: `${file}: ${symbol?.name}` });
        continue;
      }
      const owner = ownerOf(handle.resolve());
      if (owner === null || owner in ports) continue;
      lost.push({ path, declaration: `${file}: ${owner}.${symbol?.name}` });
    }
  }
  return { lost, atLiterals };
}

function calleeOf({ expression }: CallExpression): Node {
  return isPropertyAccessExpression(expression) ? expression.name : expression;
}

const signatures = [SyntaxKind.MethodSignature, SyntaxKind.PropertySignature];

/** The interface or type whose member a declaration is; null where it is none, as a function or a parameter. */
function ownerOf(declaration: Node | undefined): string | null {
  let node = declaration;
  // A function type is the type of a property, or of an alias that stands for one.
  while (node !== undefined && !signatures.includes(node.kind)) {
    if (isTypeAliasDeclaration(node)) return node.name.text;
    const isInType = [SyntaxKind.FunctionType, SyntaxKind.ParenthesizedType, SyntaxKind.UnionType];
    if (!isInType.includes(node.kind)) return null;
    node = node.parent;
  }
  for (; node !== undefined; node = node.parent) {
    if (isInterfaceDeclaration(node) || isTypeAliasDeclaration(node)) return node.name.text;
  }
  return node === undefined && declaration !== undefined ? 'a type without a name' : null;
}

function countFactoriesCalledOnce(files: readonly SourceFileMeasures[]): number {
  const called = new Map<string, number>();
  for (const { expression } of files.flatMap(({ calls }) => calls)) {
    if (isIdentifier(expression)) {
      called.set(expression.text, (called.get(expression.text) ?? 0) + 1);
    }
  }
  const factories = files.flatMap((file) => file.factories);
  return factories.filter((name) => (called.get(name) ?? 0) <= 1).length;
}
