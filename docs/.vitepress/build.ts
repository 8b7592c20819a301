/** The generator, for scripts/docs-build.ts: only modules of this folder find what is installed in it. */
import { build } from 'vitepress';

/** Makes the site of the pages in the folder `docs`, in the folder `outDir`. */
export async function generateSite(docs: string, outDir: string, tempDir: string): Promise<void> {
  await build(docs, {
    onAfterConfigResolve: (site) => {
      Object.assign(site, { outDir, tempDir });
    },
  });
}
