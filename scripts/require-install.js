/**
 * Runs before scripts that a newcomer may call in a checkout in which nothing is installed: npm then takes the system's own
 * Node, which may read no TypeScript. Plain JavaScript, so that any Node can say what to do.
 */
import { existsSync } from 'node:fs';

const installed = new URL('../node_modules/.package-lock.json', import.meta.url);
if (!existsSync(installed)) {
  console.error('Nothing is installed in this checkout yet: run npm install first.');
  process.exit(1);
}
