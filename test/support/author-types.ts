/** What an author's compiler and Node say of the packages. */
import { join } from 'node:path';
import type { InstalledPackages } from './installed-packages.ts';

const tsc = join(import.meta.dirname, '../../node_modules/.bin/tsc');

/** Compiles, under a strict configuration, what an author writes in a folder that has the packages. */
export async function checkTypes(folder: Pick<InstalledPackages, 'run' | 'write'>) {
  return compileStrictly(folder, 'types', [
    `import { createClient, JobFailedError, SkillwrightError } from '@skillwright/client';
     import { defineSkill, SkillError, type SkillContext } from 'skillwright';
     async function pay(order: number, ctx: SkillContext): Promise<string> {
       const paid: { at: string } = await ctx.step('pay', () => ({ at: new Date() }));
       if (order < 0) throw new SkillError('no such order', { retryable: false });
       return paid.at;
     }
     export default defineSkill({
       category: 'own', name: 'pay', version: 'v1.0', displayName: 'Pay', description: 'Pays.',
       parameters: { type: 'object', required: ['order'], properties: { order: { type: 'number' } } },
       output: { type: 'object', required: ['paid'], properties: { paid: { type: 'string' } } },
       run: async ({ order }, ctx) => ({ paid: await pay(order, ctx) }),
     });
     interface Bill { readonly order?: number | undefined }
     export const typed = defineSkill({
       category: 'own', name: 'bill', version: 'v1.0', displayName: 'Bill', description: 'Bills.',
       parameters: { type: 'object', properties: { order: { type: 'number' } } },
       output: { type: 'object' },
       config: { KEY: { description: 'A key.' }, TEAM: { description: 'A name.', required: false } },
       async run({ order }: Bill, { config }): Promise<{ key: string; team: string | undefined }> {
         // @ts-expect-error It is not declared.
         config.OTHER;
         return { key: config.KEY + order, team: config.TEAM };
       },
     });
     defineSkill({
       category: 'own', name: 'wrong', version: 'v1.0', displayName: 'Wrong', description: 'Wrong.',
       parameters: { type: 'object', properties: { order: { type: 'number' } } },
       output: { type: 'object', required: ['paid'], properties: { paid: { type: 'string' } } },
       // @ts-expect-error The schema says that an order is a number, which may be absent.
       run: ({ order }) => ({ paid: order }),
     });
     // @ts-expect-error A skill has a function.
     defineSkill({ category: 'own', name: 'none', version: 'v1.0' });
     const { paid } = await createClient({ url: 'http://platform' }).run<{ paid: string }>('own/v1.0/pay', {});
     export const text: string = paid;
     export const codes = (error: SkillwrightError | JobFailedError): string => error.code;
    `,
  ]);
}

/** Compiles these modules, in a folder below the author's. */
export async function compileStrictly(
  folder: Pick<InstalledPackages, 'run' | 'write'>,
  name: string,
  modules: readonly string[],
) {
  folder.write(`${name}/package.json`, '{"type":"module"}');
  folder.write(
    `${name}/tsconfig.json`,
    JSON.stringify({
      compilerOptions: {
        ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'dom'], types: [] },
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
        ...{ skipLibCheck: false, verbatimModuleSyntax: true, noEmit: true },
      },
    }),
  );
  for (const [i, code] of modules.entries()) folder.write(`${name}/module-${i}.ts`, code);
  const { code, stdout } = await folder.run(process.execPath, [tsc, '-p', name]);
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
