/**
 * Builds the system text for a run of a SKILL.md skill: its instructions, the list of its files, and how
 * to read one. Only the names of the files are included, so that the model reads just the files that the
 * task needs. The text is bounded for any folder.
 */
import type { SkillFiles } from './skill-folder-files.ts';
import type { SkillMd } from './skill-md.ts';

/** Bytes of the instructions; the rest can be read as a file. */
const bodyBytesMax = 204_800;
/** Characters of the list of files. */
const listCharsMax = 24_576;

/** The system text of a run; at most 256 KiB. */
export function instructionsText(skill: SkillMd, files: SkillFiles): string {
  return [
    `You carry out the skill ${skill.name}: ${skill.description}`,
    "Follow the skill's instructions below for the task that the user gives.",
    ...environment(skill),
    fileList(files),
    `<skill_instructions name="${skill.name}">\n${bodyOf(skill)}\n</skill_instructions>`,
  ].join('\n\n');
}

function environment({ compatibility }: SkillMd): string[] {
  return compatibility === undefined ? [] : [`What the skill says it needs: ${compatibility}`];
}

const cannotExecute =
  'Nothing can be executed here: neither the scripts of the skill nor commands that the instructions ' +
  'name. Where they ask for a tool that you do not have, do that part by yourself as well as you can, ' +
  'and say plainly what could not be done.';

function fileList({ files, more, isComplete }: SkillFiles): string {
  const others = files.filter(({ path }) => !/^skill\.md$/i.test(path));
  if (others.length === 0) return cannotExecute;
  const lines: string[] = [];
  let left = listCharsMax;
  for (const { path, size } of others) {
    const line = `- ${onOneLine(path)} (${size} bytes)`;
    left -= line.length + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const unlisted = more + others.length - lines.length;
  if (unlisted > 0) lines.push(`- and ${isComplete ? '' : 'at least '}${unlisted} more`);
  else if (!isComplete) lines.push('- and more');
  return [
    'Files of the skill, which the instructions may name. Read one with the tool read_file, with its ' +
      `path as it stands here, when the task needs it and not before. ${cannotExecute}`,
    lines.join('\n'),
  ].join('\n');
}

/** A file name with a line break must not look like a line of this text. */
function onOneLine(path: string): string {
  return /[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path;
}

function bodyOf({ body, bodyOffset }: SkillMd): string {
  if (Buffer.byteLength(body) <= bodyBytesMax) return body;
  // In streaming mode the decoder drops a character that is cut at the end.
  const start = new TextDecoder().decode(Buffer.from(body).subarray(0, bodyBytesMax), {
    stream: true,
  });
  const next = bodyOffset + Buffer.byteLength(start);
  return `${start}\n[Cut here. Read on in SKILL.md with the tool read_file and offset ${next}.]`;
}
