/** How commands are declared: each has an example, and those that reach a platform the same options. */
import type { Command } from 'commander';

interface Declaration {
  /** What it does, from a small letter on. */
  readonly about: string;
  /** Calls without the word skillwright; at least one. */
  readonly examples: readonly [string, ...string[]];
}

/** A command with its examples. `usage` is its name and arguments, such as `show <id>`. */
export function defineCommand(
  parent: Command,
  usage: string,
  { about, examples }: Declaration,
  options: { isDefault?: boolean; hidden?: boolean } = {},
): Command {
  const word = examples.length === 1 ? 'Example' : 'Examples';
  const lines = examples.map((example) => `  skillwright ${example}`);
  return parent
    .command(usage, options)
    .description(about)
    .addHelpText('after', `\n${word}:\n${lines.join('\n')}`);
}

/** A command that reaches a platform with an API key. */
export function defineApiCommand(...args: Parameters<typeof defineCommand>): Command {
  return withTarget(defineCommand(...args), '--key <key>', 'an API key (SKILLWRIGHT_API_KEY)');
}

/** The command that lists what a group of commands is about, which the group's name alone runs too. */
export function defineList(parent: Command, { about, examples }: Declaration): Command {
  const declaration = { about: `${about} (the default of ${parent.name()})`, examples };
  return defineApiCommand(parent, 'list', declaration, { isDefault: true });
}

/** A command that reaches a platform with the admin secret. */
export function defineAdminCommand(...args: Parameters<typeof defineCommand>): Command {
  return withTarget(
    defineCommand(...args),
    '--admin-secret <secret>',
    "the platform's admin secret (ADMIN_SECRET)",
  );
}

function withTarget(command: Command, credential: string, about: string): Command {
  return command
    .optionsGroup('Platform and output:')
    .option('--url <url>', 'the address of the platform (SKILLWRIGHT_URL)')
    .option(credential, about)
    .option('--profile <name>', 'a profile with address and key (SKILLWRIGHT_PROFILE)')
    .option('--json', 'print JSON: one value, or one a line where it streams')
    .optionsGroup('Options:');
}

/** The options of a list. */
export function withPage(command: Command): Command {
  return command
    .option('--limit <n>', 'how many to list', '20')
    .option('--offset <n>', 'how many to leave out before them', '0');
}
