/**
 * Log lines for a person at a terminal, in place of JSON: what happened and its fields on one line; for a failed run the
 * reason, the line of the skill's code, and the job. Never prints a character that a terminal obeys, because messages
 * and outputs come from skills and callers. Loaded only where standard output is a terminal.
 */
import { relative, sep } from 'node:path';
import { styleText } from 'node:util';
import { callerFrame } from '../../core/executors/stack-frames.ts';

/** Of one field's value, and of one text. */
const fieldCharsMax = 300;
const textCharsMax = 8_192;
const stackLinesMax = 30;
const indent = ' '.repeat(9);
const levels: Readonly<Record<number, string>> = {
  10: 'trace: ',
  20: 'debug: ',
  40: 'warning: ',
  50: 'error: ',
  60: 'fatal: ',
};
const warningLevel = 40;
const errorLevel = 50;

type Fields = Readonly<Record<string, unknown>>;

interface LogLine extends Fields {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
}

/** A destination of the logger that prints each of its lines. Paths below `directory` are shown from there. */
export function readableLog(print: (text: string) => void, directory: string) {
  return {
    write: (json: string): void => print(`${linesOf(JSON.parse(json), directory).join('\n')}\n`),
  };
}

function linesOf({ pid: _pid, ...line }: LogLine, directory: string): string[] {
  const time = styleText('dim', new Date(line.time).toTimeString().slice(0, 8));
  const [first = '', ...rest] = isFailedRun(line)
    ? failedRun(line, directory)
    : (printedBySkill(line) ?? otherLine(line));
  return [`${time} ${first}`, ...rest.map((text) => `${indent}${text}`)];
}

interface FailedRun extends LogLine {
  readonly job_id: string;
  readonly skill: string;
  readonly error: { readonly code: string; readonly message: string };
  readonly attempt?: number;
  readonly status?: string;
  readonly stack?: string;
}

function isFailedRun(line: LogLine): line is FailedRun {
  const { job_id: jobId, skill, error } = line;
  const { code, message } = (error ?? {}) as Fields;
  return [jobId, skill, code, message].every((field) => typeof field === 'string');
}

/** A run, or a skill that a model called as a tool. */
function failedRun(line: FailedRun, directory: string): string[] {
  const { job_id: jobId, skill, error, attempt, status, stack = '' } = line;
  const [reason = '', ...more] = textLines(error.message);
  const place = callerFrame(stack);
  const facts = [
    error.code,
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
    status === undefined ? `in job ${jobId}` : `job ${jobId} is ${status}`,
  ];
  return [
    `${styleText('red', '✗')} ${clean(skill)}: ${styleText('red', reason)}`,
    ...more,
    ...(place === null ? [] : [`at ${clean(placeText(place, directory))}`]),
    styleText('dim', clean(facts.join(', '))),
  ];
}

function placeText(
  { file, line, column }: { file: string; line: number; column: number },
  directory: string,
) {
  const short = relative(directory, file);
  return `${short.startsWith(`..${sep}`) ? file : short}:${line}:${column}`;
}

/** What the code of a skill printed. */
function printedBySkill({ skill, stdout, stderr }: LogLine): string[] | null {
  const printed = stdout ?? stderr;
  if (typeof printed !== 'string') return null;
  const name = typeof skill === 'string' ? skill : 'skills';
  const [first = '', ...more] = textLines(printed);
  return [`${styleText(stderr === undefined ? 'cyan' : 'yellow', clean(name))}: ${first}`, ...more];
}

function otherLine({ level, time: _time, msg = '', err, ...fields }: LogLine): string[] {
  const [text = '', ...more] = textLines(msg);
  const style = level >= errorLevel ? 'red' : level >= warningLevel ? 'yellow' : null;
  const shown = `${levels[level] ?? ''}${text}`;
  const facts = Object.entries(fields).map(([name, value]) => `${clean(name)}=${valueText(value)}`);
  const first = [
    style === null ? shown : styleText(style, shown),
    ...(facts.length === 0 ? [] : [styleText('dim', facts.join(' '))]),
  ];
  return [first.join('  '), ...more, ...errorLines(err)];
}

/** As the logger writes an error. */
function errorLines(error: unknown): string[] {
  if (error === undefined || error === null) return [];
  const { stack, message } = error as Fields;
  const text = [stack, message].find((one) => typeof one === 'string') ?? JSON.stringify(error);
  return textLines(String(text)).slice(0, stackLinesMax);
}

function valueText(value: unknown): string {
  const text =
    typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return clean(cut(text, fieldCharsMax));
}

function textLines(text: string): string[] {
  return cut(text, textCharsMax).trimEnd().split(/\r?\n/).map(clean);
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}…`;
}

/** Without what a terminal obeys or hides. */
function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}
