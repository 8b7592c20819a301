/** Builds the console, if its sources have changed since the last time, as a start of the platform does. */
import { buildConsole } from '../src/apps/console/files.ts';
import { createLogger } from '../src/kernel/log.ts';

await buildConsole(createLogger('info'));
