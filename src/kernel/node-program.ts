/**
 * How a process of the platform starts another one with `process.execPath`. That is Node, or the single executable, which
 * takes flags of Node in one argument, and the module to run after another (scripts/executable/main.js).
 */

const runModule = '--run-module';
/** The executable starts every process with the flags of the platform itself; these take back what is not for all. */
const ownFlags = ['--min-semi-space-size=0'];

/** Whether this is the single executable. */
export function isExecutable(): boolean {
  // An import would fail where Node is built without it.
  return process.getBuiltinModule('node:sea')?.isSea() ?? false;
}

/** The arguments before the module that a new process runs, with the flags of Node for it. */
export function nodeArguments(flags: readonly string[]): string[] {
  return isExecutable() ? executableArguments(flags) : [...flags];
}

/** @public For its test. */
export function executableArguments(flags: readonly string[]): string[] {
  return [`--node-options=${[...ownFlags, ...flags].map(asOption).join(' ')}`, runModule];
}

/** As Node reads options from one text. */
function asOption(flag: string): string {
  return /[\s"\\]/.test(flag) ? `"${flag.replace(/["\\]/g, '\\$&')}"` : flag;
}
