/** The command `skillwright`: the arguments and the environment of this process, given to the program. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { processIo } from './io.ts';
import { runCli } from './program.ts';

const manifest = join(import.meta.dirname, '../../package.json');
const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };

process.exitCode = await runCli(
  {
    io: processIo(process.env),
    version,
    async startPlatform(settings) {
      Object.assign(process.env, settings);
      // Plain JavaScript without types.
      await import(new URL('../start.js', import.meta.url).href);
    },
  },
  process.argv.slice(2),
);
