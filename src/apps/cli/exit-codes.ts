/** The exit codes of the command line (docs/cli.md). */

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  jobFailed: 3,
  unreachable: 4,
  refused: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends a command with one sentence for the person who typed it: what happened and what to do. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}
