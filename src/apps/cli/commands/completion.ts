/** `skillwright completion`: scripts for shells, which ask the hidden command `__complete` for words. */
import { Argument, type Command } from 'commander';
import { defineCommand } from '../define-command.ts';
import type { Io } from '../io.ts';

const bash = `_skillwright() {
  local IFS=$'\\n'
  COMPREPLY=($(skillwright __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _skillwright skillwright
`;
const zsh = `#compdef skillwright
_skillwright() {
  local -a found
  found=("\${(@f)$(skillwright __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(\${found:#})
  if (( \${#found} )); then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = "_skillwright" ]; then _skillwright "$@"; else compdef _skillwright skillwright; fi
`;
const fish = `function __skillwright_complete
    set -l words (commandline -opc) (commandline -ct)
    skillwright __complete -- $words[2..-1] 2>/dev/null
end
complete -c skillwright -a '(__skillwright_complete)'
`;
const scripts = { bash, zsh, fish };

export function addCompletionCommands(program: Command, io: Io): void {
  defineCommand(program, 'completion', {
    about: 'print a script with which a shell completes commands and options',
    examples: [
      'completion bash > ~/.local/share/bash-completion/completions/skillwright',
      'completion zsh > ~/.zsh/completions/_skillwright',
      'completion fish > ~/.config/fish/completions/skillwright.fish',
    ],
  })
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(Object.keys(scripts)))
    .action((shell: keyof typeof scripts) => io.stdout.write(scripts[shell]));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => {
      for (const word of completions(program, words)) io.stdout.write(`${word}\n`);
    });
}

/** What the last of the words may become: commands, or options when it begins with a dash. */
function completions(program: Command, words: readonly string[]): string[] {
  const typed = words.at(-1) ?? '';
  let command = program;
  for (const word of words.slice(0, -1)) {
    command = command.commands.find((one) => one.name() === word) ?? command;
  }
  const given = defaultOf(command);
  const candidates = typed.startsWith('-')
    ? given.options.flatMap(({ long }) => (long ? [long] : []))
    : [
        ...command.commands.map((one) => one.name()).filter((name) => !name.startsWith('__')),
        ...given.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
      ];
  return candidates.filter((one) => one.startsWith(typed));
}

/** The command that is meant where a group is named alone. */
function defaultOf(group: Command): Command {
  return group.commands.find((one) => one.name() === 'list' || one.name() === 'show') ?? group;
}
