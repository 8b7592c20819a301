/**
 * The program: environment → configuration → app, and signals → stop. The executors are started
 * first, because they load while everything else does.
 */
import module from 'node:module';
import { join } from 'node:path';

// Before anything uses a thread. Of Node's 4, two may look up names, and a name whose servers are
// silent holds one for many seconds: two of them would hold up every request to a name.
process.env.UV_THREADPOOL_SIZE ??= '16';

const oldestNode = 24;
if (Number(process.versions.node.split('.')[0]) < oldestNode) {
  console.error(
    `Skillwright needs Node ${oldestNode} or newer, and this is ${process.version}: start it with "npm start", which brings its own.`,
  );
  process.exit(1);
}
// Later starts find their modules compiled.
const compileCache =
  process.env.NODE_COMPILE_CACHE ?? join(import.meta.dirname, '../node_modules/.cache/compile');
module.enableCompileCache(compileCache);
const { run } = await import('./composition/run.ts');
await run({ ...process.env, NODE_COMPILE_CACHE: compileCache });
