/** The fields of an approval on the command line: how they are shown, and how values for them are typed. */
import type { Io } from './io.ts';
import { readSkillInput } from './skill-input.ts';

export interface FormFields {
  readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly required?: readonly string[];
}

/** A line for each field: what it is, and whether it has to be given. */
export function shownFields({ properties, required = [] }: FormFields): Record<string, string> {
  const lines = Object.entries(properties).map(([name, field]) => {
    const { type, title, description, default: standard } = field;
    const choices = choicesOf(field);
    const about = [
      choices.length > 0 ? `one of ${choices.join(', ')}` : String(type),
      required.includes(name) ? 'required' : 'optional',
      ...(standard === undefined ? [] : [`default ${JSON.stringify(standard)}`]),
    ];
    const said = [title, description].filter((text) => typeof text === 'string' && text !== '');
    return [`field ${name}`, `${about.join(', ')}${said.length > 0 ? `: ${said.join('. ')}` : ''}`];
  });
  return Object.fromEntries(lines);
}

function choicesOf({ enum: values, oneOf }: Readonly<Record<string, unknown>>): string[] {
  if (Array.isArray(values)) return values.map(String);
  if (!Array.isArray(oneOf)) return [];
  return (oneOf as readonly { const: string; title?: string }[]).map(({ const: value, title }) =>
    title === undefined ? value : `${value} (${title})`,
  );
}

/** Reads what was typed. Fields that were not get their defaults; those that are texts are taken as they are. */
export async function readAnswer(
  io: Pick<Io, 'stdin' | 'cwd'>,
  words: readonly string[],
  fields: FormFields | null,
): Promise<unknown> {
  const typed = await readSkillInput(io, words);
  if (fields === null || typed === null || typeof typed !== 'object') return typed;
  const answer: Record<string, unknown> = {};
  for (const [name, { default: standard }] of Object.entries(fields.properties)) {
    if (standard !== undefined) answer[name] = standard;
  }
  Object.assign(answer, typed);
  for (const word of words) {
    const at = word.indexOf('=');
    const name = word.slice(0, at);
    const isText = Object.hasOwn(fields.properties, name) && fields.properties[name]?.['type'];
    if (at > 0 && isText === 'string') answer[name] = word.slice(at + 1);
  }
  return answer;
}
