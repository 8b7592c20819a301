/** What `npx redocly lint` finds in an OpenAPI document, with the configuration of the repository. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { toolFile } from '../../scripts/tools.ts';

export interface Linted {
  readonly totals: object;
  readonly problems: readonly object[];
}

export function lintOpenApi(file: string): Promise<Linted> {
  const root = join(import.meta.dirname, '../..');
  const program = toolFile('scripts/tools/checks', '@redocly/cli/bin/cli.js');
  const args = [program, 'lint', file, '--format=json', `--config=${join(root, 'redocly.yaml')}`];
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      args,
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (stdout === '') reject(error ?? new Error(stderr));
        else resolve(JSON.parse(stdout));
      },
    );
  });
}
