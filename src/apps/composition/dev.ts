/** The platform of an author of skills (`skillwright dev`): a saved file is reloaded at once. */
import { readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { styleText } from 'node:util';
import type { ReloadState, SkillFault } from '../../platform/reloads/reload.schemas.ts';
import type { Reloads } from '../../platform/reloads/reload-turns.ts';
import { AuthoredSkills } from './authored-skills.ts';
import { PreparedLoads, type StartPrepared } from './prepared-loads.ts';
import { watchSkills } from './watch-skills.ts';

/** Saved files that a line names. */
const filesNamedMax = 3;
/** Characters of a line that is shown. */
const excerptCharsMax = 200;

export function authoredSkills(start: StartPrepared): AuthoredSkills {
  return new AuthoredSkills(new PreparedLoads(start));
}

/** Reloads the saved files, and prints the result in the terminal. */
export function reloadOnSave(
  reloads: Reloads,
  authored: AuthoredSkills,
  print: (text: string) => void,
  directory: string,
): void {
  const root = resolve(directory);
  let saved = new Set<string>();
  /** The files of the reload that is under way. */
  let current: Set<string> | undefined;
  const reload = async () => {
    if (current !== undefined) return;
    while (saved.size > 0 || authored.hasDeferred()) {
      current = saved;
      saved = new Set();
      await reloadSaved(reloads, print, root, current);
    }
    current = undefined;
  };
  watchSkills(
    root,
    () => authored.files(),
    (paths) => {
      const target = authored.noteSaved(paths) ? (current ?? saved) : saved;
      for (const path of paths) target.add(path);
      void reload();
    },
  );
  print(`  Watching ${root}: a saved skill is reloaded\n`);
  for (const fault of reloads.last().faults) print(textOf(fault));
}

async function reloadSaved(
  reloads: Reloads,
  print: (text: string) => void,
  root: string,
  paths: ReadonlySet<string>,
): Promise<void> {
  const savedAt = performance.now();
  const known = new Set(reloads.last().faults.map(keyOf));
  const state = await reloads.reloadHere('watch');
  const ms = Math.round(performance.now() - savedAt);
  if (state.status === 'reloaded') print(lineOf(state, namesOf(root, [...paths]), ms));
  // The fault of a file that was saved again is printed again.
  const shown = state.faults.filter((fault) => !known.has(keyOf(fault)) || paths.has(fault.file));
  for (const fault of shown) print(textOf(fault));
  if (state.status === 'refused' && shown.length === 0) print(refusalOf(state));
}

function namesOf(root: string, paths: readonly string[]): string {
  const names = paths.slice(0, filesNamedMax).map((path) => relative(root, path));
  const more = paths.length - names.length;
  return `${names.join(', ')}${more === 0 ? '' : ` and ${more} more`}`;
}

function lineOf(
  { added, changed, removed, differences }: ReloadState,
  names: string,
  ms: number,
): string {
  const what = [
    ...added.map((key) => `  + ${key}`),
    ...changed.map((key) => `  ~ ${key}`),
    ...removed.map((key) => `  - ${key}`),
    ...differences.map(
      ({ skill, difference }) => `  warning: ${skill} would break its callers: ${difference}`,
    ),
  ];
  const from = names === '' ? '' : `: ${names}`;
  return `${[`${styleText('green', '✓')} reloaded in ${ms} ms${from}`, ...what].join('\n')}\n`;
}

function textOf(fault: SkillFault): string {
  const place = [fault.file, fault.line, fault.column].filter((part) => part !== null).join(':');
  const reason = fault.reason.replace(/ \(line \d+[^()]*\)$/, '');
  const lines = [reason, ...excerptOf(fault), insteadOf(fault)].map((line) => `  ${line}\n`);
  return `${styleText('red', '✗')} ${place}\n${lines.join('')}`;
}

/** What happens to runs of the skill. */
function insteadOf({ serving, failing }: SkillFault): string {
  if (failing !== null) {
    return `Runs of ${failing} fail until it loads: its last version does not load either.`;
  }
  return serving === null
    ? 'It is left out.'
    : `The last version of ${serving} that loaded is in use.`;
}

/** The line at fault as it is now, with a mark below its column. */
function excerptOf({ file, line, column }: SkillFault): string[] {
  if (line === null) return [];
  const text = lineIn(file, line).replaceAll('\t', ' ');
  if (text.trim() === '' || text.length > excerptCharsMax) return [];
  const excerpt = styleText('dim', `${line} | ${text}`);
  return column === null
    ? [excerpt]
    : [excerpt, `${' '.repeat(`${line} | `.length + column - 1)}^`];
}

function lineIn(file: string, line: number): string {
  try {
    return readFileSync(file, 'utf8').split('\n')[line - 1]?.trimEnd() ?? '';
  } catch {
    return '';
  }
}

function refusalOf({ reason }: ReloadState): string {
  return `${styleText('red', '✗')} not reloaded; what was loaded before stays in use\n  ${reason}\n`;
}

function keyOf({ file, reason, failing }: SkillFault): string {
  return `${file}\n${reason}\n${failing}`;
}
