/**
 * `npm run docs:build`: makes the site of the guides (docs/.vitepress) in `docs/dist`, where the platform finds it,
 * unless that holds the site of the present sources. Refuses a site with a fault: a dead link, a page that the menu does
 * not name, something that a page would load from another host.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { faultsOfSite } from './docs/links.ts';
import { installTools } from './tools.ts';

const root = join(import.meta.dirname, '..');
const built = join(root, 'docs/dist');
/** The generator's files of the build. Modules in here find `node_modules`. */
const work = join(root, '.cache');
const stamp = join(built, '.built-from');
const base = '/docs/guide/';
/** Pages of the platform beside the site. */
const others = ['/docs/', '/console/'];
/** Smaller ones gain little, and a package may have 1,500 files. */
const compressedBytesMin = 10_000;

const fingerprint = fingerprintOfSources();
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== fingerprint) await buildSite();
console.log(`${globSync('**/*.html', { cwd: built }).length} pages in docs/dist.`);

function fingerprintOfSources(): string {
  const patterns = [
    ...['docs/**/*.{md,png}', 'docs/.vitepress/**/*.{ts,css}', 'scripts/docs/*.ts'],
    ...['scripts/{docs-build,check-doc-paths}.ts', 'packages/client/README.md'],
    ...['console/public/icon.svg', 'docs/.vitepress/package-lock.json'],
  ];
  const files = globSync(patterns, {
    cwd: root,
    exclude: ['docs/dist/**', '**/node_modules/**'],
  }).sort();
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

/** In a folder of its own, so that a platform serves the whole site before it or the whole new one. */
async function buildSite(): Promise<void> {
  await installTools('docs/.vitepress');
  const { generateSite } = await import('../docs/.vitepress/build.ts');
  mkdirSync(work, { recursive: true });
  const place = mkdtempSync(join(work, 'docs-'));
  const fresh = join(place, 'site');
  try {
    await generateSite(join(root, 'docs'), fresh, join(place, 'temp'));
    const faults = faultsOfSite(fresh, base, others);
    if (faults.length > 0) {
      console.error(faults.join('\n'));
      throw new Error('The site has faults.');
    }
    compress(fresh);
    chmodSync(fresh, 0o755);
    writeFileSync(join(fresh, '.built-from'), fingerprint);
    if (existsSync(built)) renameSync(built, join(place, 'old'));
    renameSync(fresh, built);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Beside each larger file that browsers keep, compressed. The pages are small. */
function compress(folder: string): void {
  for (const name of globSync('assets/**/*.{js,css}', { cwd: folder })) {
    const bytes = readFileSync(join(folder, name));
    if (bytes.length < compressedBytesMin) continue;
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  }
}
