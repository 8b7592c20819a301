import type { ConsoleFiles } from '../../src/apps/console/files.ts';

/** Files of the console that are built already. */
export const consoleFilesAt = (directory: string): ConsoleFiles =>
  ({ directoryFor: () => directory }) as unknown as ConsoleFiles;
