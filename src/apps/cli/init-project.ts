/** `skillwright init`: writes the project of `templates/project` into a new folder. */
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { packageVersion } from '../../core/config/version.ts';
import { isExecutable } from '../../kernel/node-program.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import { type Io, writeJson } from './io.ts';

const root = join(import.meta.dirname, '../../..');
const template = join(root, 'templates/project');
const namePattern = /^[a-z0-9][a-z0-9._-]{0,100}$/;
/** npm packs no file that is named like these. */
const renamed: Readonly<Record<string, string>> = {
  gitignore: '.gitignore',
  'env.example': '.env.example',
  'package.template.json': 'package.json',
  'README.template.md': 'README.md',
};

export function initProject(io: Io, { name, isJson }: { name: string; isJson: boolean }): void {
  const folder = resolve(io.cwd, name);
  const project = basename(folder);
  if (!namePattern.test(project)) {
    const message = `${project} is no name of a project: use lower-case letters, digits, dots, hyphens and underscores.`;
    throw new CliError(message, exitCodes.usage);
  }
  refuseTaken(folder);
  const values = { name: project, skillwright: packageOf(folder) ?? packageVersion() };
  const files = globSync('**/*', { cwd: template, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(template, join(entry.parentPath, entry.name)))
    .map((from) => writeFile({ from, folder, values }))
    .sort();
  if (isJson) {
    writeJson(io, { folder, files });
    return;
  }
  io.stdout.write(`Made ${folder} with ${files.length} files. Next:\n\n`);
  io.stdout.write(`  cd ${name}\n  npm install\n  npm test\n  npm run dev\n`);
}

/** Never writes into a folder with files. */
function refuseTaken(folder: string): void {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isDirectory() && readdirSync(folder).length === 0) return;
  const what = stats.isDirectory() ? 'is not empty' : 'is a file';
  throw new CliError(`${folder} ${what}. Choose another name.`, exitCodes.failed);
}

function writeFile({
  from,
  folder,
  values,
}: {
  from: string;
  folder: string;
  values: Readonly<Record<string, string>>;
}): string {
  const text = readFileSync(join(template, from), 'utf8');
  const filled = text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole);
  const to = join(dirname(from), renamed[basename(from)] ?? basename(from));
  const file = join(folder, to);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, filled);
  return to;
}

/**
 * Where npm installed this package from, if that was a tarball: the project gets the same one. Null for a package of
 * a registry, and for the single executable.
 */
function packageOf(folder: string): string | null {
  if (isExecutable()) return null;
  const modules = dirname(root);
  if (basename(modules) !== 'node_modules') return `file:${relative(folder, root)}`;
  try {
    const lock = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as {
      packages?: Record<string, { resolved?: string }>;
    };
    const from = lock.packages?.['node_modules/skillwright']?.resolved;
    if (from === undefined || !from.startsWith('file:')) return null;
    const file = resolve(dirname(modules), from.slice('file:'.length));
    return `file:${relative(folder, file)}`;
  } catch {
    return null;
  }
}
