/** The command `skillwright`: the arguments and the environment of this process, given to the program. */
import { runningVersion } from '../../core/config/version.ts';
import { Io } from './io.ts';
import { runCli } from './program.ts';

process.exitCode = await runCli(
  {
    io: new Io(process.env),
    version: runningVersion(),
    async startPlatform(settings) {
      Object.assign(process.env, settings);
      // Plain JavaScript without types.
      await import(new URL('../../start.js', import.meta.url).href);
    },
  },
  process.argv.slice(2),
);
