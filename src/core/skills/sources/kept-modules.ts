/**
 * Modules of skills as they were when they last loaded. The module of a kept skill, and the author's own modules
 * that it imports, have urls of their own, so a helper may be loaded in two versions. Packages and CommonJS modules
 * are taken as they are now.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { KeptSkill, LoadedFile } from './load-plan.ts';

const mark = '?kept=';

/** From now on this process can import the urls that `keptUrl` gives. */
export function provideKeptModules(kept: readonly KeptSkill[]): void {
  if (kept.length === 0) return;
  const skills = kept.map(
    ({ files }) =>
      new Map(files.filter(({ text }) => text !== null).map((file) => [file.path, file])),
  );
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const [parent = '', number] = (context.parentURL ?? '').split(mark);
      const files = number === undefined ? undefined : skills[Number(number)];
      if (files === undefined) return nextResolve(specifier, context);
      // A helper may have been deleted since, so it is not looked for on the disk.
      const direct = /^(?:\.{0,2}\/|file:)/.test(specifier) ? new URL(specifier, parent).href : '';
      const { url, format } = files.has(pathOf(direct))
        ? { url: direct, format: files.get(pathOf(direct))?.format }
        : nextResolve(specifier, { ...context, parentURL: parent });
      const isKept = files.has(pathOf(url));
      return {
        url: isKept ? `${url}${mark}${number}` : url,
        format: format ?? undefined,
        importAttributes: context.importAttributes,
        shortCircuit: true,
      };
    },
    load(url, context, nextLoad) {
      const file = fileOf(skills, url);
      return file === undefined
        ? nextLoad(url, context)
        : { format: file.format ?? undefined, source: file.text ?? '', shortCircuit: true };
    },
  });
}

/** The url of the module of the kept skill of this number. */
export function keptUrl(file: string, number: number): string {
  return `${pathToFileURL(file).href}${mark}${number}`;
}

function fileOf(
  skills: readonly ReadonlyMap<string, LoadedFile>[],
  url: string,
): LoadedFile | undefined {
  const [plain = '', number] = url.split(mark);
  return number === undefined ? undefined : skills[Number(number)]?.get(pathOf(plain));
}

function pathOf(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url) : '';
}
