/**
 * `skillwright` as skills import it: always the platform's own module for authors, so that a skill needs no
 * package beside it and never gets one of another version.
 */
import { registerHooks } from 'node:module';
import { extname } from 'node:path';

const url = new URL(`../../../author${extname(import.meta.url)}`, import.meta.url).href;

/** From now on `import 'skillwright'` leads there in this process. */
export function provideAuthorModule(): void {
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      specifier === 'skillwright' ? { url, shortCircuit: true } : nextResolve(specifier, context),
  });
}
