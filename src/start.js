/**
 * What the start command names: turns the compile cache on and loads `main.ts`, which then comes from that
 * cache. Plain JavaScript, because Node would otherwise load its parser of TypeScript before the cache is on, which
 * holds 14 MiB.
 */
import module from 'node:module';
import { compileCacheDirectory } from './apps/start/compile-cache.js';

const oldestNode = 26;
if (Number(process.versions.node.split('.')[0]) < oldestNode) {
  console.error(
    `Skillwright needs Node ${oldestNode} or newer, and this is ${process.version}: run "npm install", which brings its own Node, then start it with "npm start".`,
  );
  process.exit(1);
}
// Before anything uses a thread. Of Node's 4, two may look up names, and a name whose servers are
// silent holds one for many seconds: two of them would hold up every request to a name.
process.env.UV_THREADPOOL_SIZE ??= '16';
// Later starts, and executors, find their modules compiled.
const compileCache = compileCacheDirectory(process.env);
if (compileCache !== undefined) {
  process.env.NODE_COMPILE_CACHE = compileCache;
  module.enableCompileCache(compileCache);
}
await import('./main.ts');
