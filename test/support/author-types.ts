/** What an author's compiler and Node say of the packages. */
import { join } from 'node:path';
import type { InstalledPackages } from './installed-packages.ts';

const tsc = join(import.meta.dirname, '../../node_modules/.bin/tsc');

/** Compiles, under a strict configuration, what an author writes in a folder that has the packages. */
export async function checkTypes(folder: Pick<InstalledPackages, 'run' | 'write'>) {
  folder.write('types/package.json', '{"type":"module"}');
  folder.write(
    'types/tsconfig.json',
    JSON.stringify({
      compilerOptions: {
        ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'dom'], types: [] },
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
        ...{ skipLibCheck: false, verbatimModuleSyntax: true, noEmit: true },
      },
    }),
  );
  folder.write(
    'types/skill.ts',
    `import { createClient, JobFailedError, SkillwrightError } from '@skillwright/client';
     import { defineSkill, SkillError, type SkillContext } from 'skillwright';
     async function pay(order: number, ctx: SkillContext): Promise<string> {
       const paid: { at: string } = await ctx.step('pay', () => ({ at: new Date() }));
       if (order < 0) throw new SkillError('no such order', { retryable: false });
       return paid.at;
     }
     export default defineSkill<{ order: number }, { paid: string }>({
       category: 'own', name: 'pay', version: 'v1.0', displayName: 'Pay', description: 'Pays.',
       parameters: { type: 'object' }, output: { type: 'object' },
       run: async ({ order }, ctx) => ({ paid: await pay(order, ctx) }),
     });
     interface Bill { readonly order: number }
     export const typed = defineSkill({
       category: 'own', name: 'bill', version: 'v1.0', displayName: 'Bill', description: 'Bills.',
       parameters: { type: 'object' }, output: { type: 'object' },
       config: { KEY: { description: 'A key.' }, TEAM: { description: 'A name.', required: false } },
       async run({ order }: Bill, { config }): Promise<{ key: string; team: string | undefined }> {
         // @ts-expect-error It is not declared.
         config.OTHER;
         return { key: config.KEY + order, team: config.TEAM };
       },
     });
     // @ts-expect-error A skill has a function.
     defineSkill({ category: 'own', name: 'none', version: 'v1.0' });
     const { paid } = await createClient({ url: 'http://platform' }).run<{ paid: string }>('own/v1.0/pay', {});
     export const text: string = paid;
     export const codes = (error: SkillwrightError | JobFailedError): string => error.code;
    `,
  );
  const { code, stdout } = await folder.run(process.execPath, [tsc, '-p', 'types']);
  return { code, stdout };
}

/** The modules that an import of `specifier` loads, by their URLs, and the names that it exports. */
export async function loadedBy(
  folder: Pick<InstalledPackages, 'run' | 'write'>,
  specifier: string,
): Promise<{ loaded: string[]; exports: string[] }> {
  const file = folder.write(
    'loaded.mjs',
    `import { registerHooks } from 'node:module';
     const loaded = [];
     registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
     const author = await import(${JSON.stringify(specifier)});
     console.log(JSON.stringify({ loaded, exports: Object.keys(author).sort() }));`,
  );
  const { stdout, stderr } = await folder.run(process.execPath, [file]);
  return JSON.parse(stdout || stderr);
}
