/**
 * The program, which `start.js` loads: environment → configuration → app, and signals → stop. The executors are
 * started first, because they load while everything else does. Runs the bundle of these sources if there is one,
 * and if not the sources. It does not make the bundle: that takes five times the memory of the platform.
 */
import module from 'node:module';
import { freshBundle } from './apps/start/bundle.ts';
import { traceSources } from './apps/start/stack-traces.ts';

const bundle = freshBundle();
if (bundle !== null) traceSources();
const { run }: typeof import('./apps/composition/run.ts') =
  bundle === null
    ? await import('./apps/composition/run.ts')
    : module.createRequire(import.meta.url)(bundle);
await run(process.env, {
  isAuthoring: process.argv[2] === 'dev',
  isBundled: bundle !== null,
});
