/** What a release has beside its packages: notes, a list of what is in it, the formula of Homebrew, and digests of all. */
import { createHash } from 'node:crypto';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Release {
  readonly root: string;
  readonly version: string;
  /** Of the changelog. */
  readonly entry: string;
  /** Runs a program in the root; its output. */
  run(program: string, args: readonly string[]): string;
}

const folder = 'dist-packages';
const sbomArguments = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'];

/** Writes them into `dist-packages`; their names. */
export function writeReleaseFiles(release: Release): string[] {
  const { root, version, entry, run } = release;
  const repository = repositoryOf(root);
  const write = (name: string, text: string) => writeFileSync(join(root, folder, name), text);
  write('release-notes.md', notesOf(entry, version, repository));
  write('sbom.cdx.json', run('npm', [...sbomArguments, '--omit', 'dev', '--package-lock-only']));
  const made = ['release-notes.md', 'sbom.cdx.json'];
  if (repository !== undefined) {
    write('skillwright.rb', formulaOf(root, version, repository));
    made.push('skillwright.rb');
  }
  write('SHA256SUMS', digestsOf(root));
  return [...made, 'SHA256SUMS'];
}

/** The address of the repository that package.json names, without `git+` and `.git`. */
function repositoryOf(root: string): string | undefined {
  const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    repository?: string | { url: string };
  };
  const url = typeof repository === 'string' ? repository : repository?.url;
  return url?.replace(/^git\+/, '').replace(/\.git$/, '');
}

/** The entry of the changelog, whose links lead to the files of that version. */
export function notesOf(entry: string, version: string, repository: string | undefined): string {
  const text =
    repository === undefined
      ? entry
      : entry.replace(/\]\((?!https?:|#)/g, `](${repository}/blob/v${version}/`);
  const check =
    'To check what you have fetched: `sha256sum --check --ignore-missing SHA256SUMS`. `sbom.cdx.json` lists what is in it.';
  return `${text}\n\n${check}\n`;
}

/** The formula with the addresses and digests of the executables. Throws where one of them is missing. */
function formulaOf(root: string, version: string, repository: string): string {
  const nameOf = (system: string) => `skillwright-${version}-${system}.gz`;
  return readFileSync(join(root, 'deploy/homebrew/skillwright.rb'), 'utf8')
    .replace(/@URL ([\w-]+)@/g, (_all, system: string) => {
      return `${repository}/releases/download/v${version}/${nameOf(system)}`;
    })
    .replace(/@SHA256 ([\w-]+)@/g, (_all, system: string) => digestOf(root, nameOf(system)))
    .replaceAll('@VERSION@', version)
    .replaceAll('@REPOSITORY@', repository);
}

/** As `sha256sum` prints them, of all that is fetched. */
function digestsOf(root: string): string {
  const names = globSync('*.{tgz,gz,json}', { cwd: join(root, folder) }).sort();
  return names.map((name) => `${digestOf(root, name)}  ${name}\n`).join('');
}

function digestOf(root: string, name: string): string {
  return createHash('sha256')
    .update(readFileSync(join(root, folder, name)))
    .digest('hex');
}
