/**
 * The program, which `start.js` loads: environment → configuration → app, and signals → stop. The executors are
 * started first, because they load while everything else does. Runs the bundle of these sources if there is one,
 * and if not the sources. It does not make the bundle: that takes five times the memory of the platform.
 */
import { freshBundle } from './apps/start/bundle.ts';
import { loadBundle } from './apps/start/compiled-bundle.ts';
import { traceSources } from './apps/start/stack-traces.ts';

const bundle = freshBundle();
if (bundle !== null) traceSources();
const { run } =
  bundle === null
    ? await import('./apps/composition/run.ts')
    : (loadBundle(bundle) as typeof import('./apps/composition/run.ts'));
await run(process.env, {
  isAuthoring: process.argv[2] === 'dev',
  isBundled: bundle !== null,
});
