/**
 * The program, which `start.js` loads: environment → configuration → app, and signals → stop. The executors are
 * started first, because they load while everything else does. Runs the bundle of these sources if there is one;
 * if not, runs the sources and makes the bundle for the next start.
 */
import module from 'node:module';
import { join } from 'node:path';
import { freshBundle, root } from './apps/start/bundle.ts';
import { traceSources } from './apps/start/stack-traces.ts';

const bundle = freshBundle();
if (bundle !== null) traceSources();
const { run }: typeof import('./apps/composition/run.ts') =
  bundle === null
    ? await import('./apps/composition/run.ts')
    : module.createRequire(import.meta.url)(bundle);
await run(process.env, { isAuthoring: process.argv[2] === 'dev' });
// After the build of the console: both at once would take more memory than the platform by far.
if (bundle === null) await makeBundle();

/** Where the bundler is not installed, this fails, and every start runs the sources. */
async function makeBundle(): Promise<void> {
  const [{ spawn }, { setPriority }] = await Promise.all([
    import('node:child_process'),
    import('node:os'),
  ]);
  const maker = spawn(process.execPath, [join(root, 'scripts/bundle.ts')], {
    stdio: 'ignore',
    // Without the platform's secrets.
    env: { PATH: process.env['PATH'] },
  });
  maker.on('error', () => {});
  maker.unref();
  process.once('exit', () => maker.kill('SIGKILL'));
  if (maker.pid !== undefined) setPriority(maker.pid, 10);
}
