/** History: the messages of a conversation's earlier jobs, which precede the task of this job in the prompt. */
import type { DialogueMessage } from '../../adapters/models/model.ts';
import type { Conversations } from '../conversations/conversations.ts';
import { leftOutMark, unjudgedMark } from '../conversations/dialogue-marks.ts';
import { filesOfInput } from '../files/references.ts';
import { messageText, taskIn } from '../jobs/message-text.ts';
import { jobsOnRecord } from '../journal/taken-over.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import { type AttachingTo, attached } from './attachments.ts';
import { log, type ThinkingAttempt } from './attempt.ts';
import { type Summary, summaryText } from './compaction-plan.ts';
import { asHistory } from './dialogue.ts';
import { recordTask } from './guard-records.ts';
import { filesIn as filesInMessage, inWords, leftOutLater } from './message-files.ts';
import { inputWithTask, judgedText } from './released.ts';
import { saidOf } from './steered.ts';
import type { TextGuards } from './text-guards.ts';

/** Files of earlier messages that the model is sent again, the newest first. */
const filesMax = 10;
/** Files beyond these of which the model is told that they are left out. */
const toldMax = 40;
/** The newest messages that are read; those that do not fit are left out later. */
const bounds = { limit: 400, bytesMax: 4 * 1024 * 1024 };
/** The newest messages of users, among which guards judge those that no guard has judged. */
const judgedMax = 50;

/** Earlier messages: those that no summary covers, after the last summary. */
export interface History {
  readonly messages: readonly DialogueMessage[];
  /** The id under which a message is on record. */
  readonly ids: ReadonlyMap<DialogueMessage, string>;
  /** Tools that were found in messages that the summary covers. */
  readonly tools: readonly string[];
}

export const noHistory: History = { messages: [], ids: new Map(), tools: [] };

interface HistoryEntry<Message = DialogueMessage> {
  readonly id: string;
  readonly message: Message;
  /** Left out of a summary. */
  readonly row?: DialogueRow;
}

type DialogueRow = Awaited<ReturnType<Conversations['dialogue']>>['messages'][number];

/** What the job asks, and the guards that judge what its user says. */
interface Asked {
  readonly prompt: string;
  /** The prompt as the guards have left it. */
  readonly task: string;
  readonly guards: TextGuards;
  readonly scope: WaitScope;
  readonly parent: number | null;
}

/** Oldest first. Leaves out trailing unanswered messages that equal the task, such as those of a repeated job. */
export async function historyBefore(
  attempt: ThinkingAttempt,
  asked: Asked,
  to: AttachingTo,
): Promise<History> {
  const { job } = attempt.run;
  const { conversations } = attempt.parts;
  const { messages: read, isCut } = await conversations.dialogue(
    job.conversation_id,
    jobsOnRecord(job),
    bounds,
  );
  const isTrial = job.agent_overrides !== null;
  const rows = read.filter((row) => isTrial || row.has_other_guards !== 1);
  const { kept: uncovered, summary } = afterSummary(
    rows.map((row) => ({ id: row.id, message: messageOf(row), row })),
  );
  if (isCut && (summary === undefined || uncovered.length === rows.length)) {
    const message = `Earlier messages of the conversation were left out: only the newest ${read.length} are read`;
    log(attempt, message);
  }
  const unsummarized = await judgedEntries(attempt, uncovered, asked);
  const ids = new Map<DialogueMessage, string>(
    unsummarized.map((entry) => [entry.message, entry.id]),
  );
  const history = asHistory(
    unsummarized.map(({ message }) => message),
    (made, source) => ids.set(made, ids.get(source) ?? ''),
  );
  const end = history.findLastIndex(({ role, text }) => role !== 'user' || text !== asked.task);
  const kept = history.slice(0, end + 1);
  const named = new Map(
    unsummarized.map(({ id, row }) => [
      id,
      { jobId: row?.job_id, names: row === undefined ? [] : filesIn(row.content, row.task_field) },
    ]),
  );
  for (let at = kept.length - 1, left = filesMax, told = toldMax; at >= 0; at--) {
    const message = kept[at] as DialogueMessage;
    const id = ids.get(message) ?? '';
    if (message.role !== 'user') {
      const files = filesInMessage(message);
      const made = files.length > left ? inWords(message, leftOutLater) : message;
      left -= filesInMessage(made).length;
      kept[at] = made;
      ids.set(made, id);
      continue;
    }
    const { jobId = null, names: all = [] } = named.get(id) ?? {};
    const names = all.slice(0, left + told);
    if (names.length === 0) continue;
    const toEarlier = { ...to, earlierJob: jobId, filesMax: left };
    const made = await attached(attempt, message.text, names, toEarlier);
    told -= Math.max(0, names.length - left);
    left -= Math.min(left, names.length);
    kept[at] = made;
    ids.set(made, id);
  }
  return { messages: kept, ids, tools: summary?.tools ?? [] };
}

/**
 * The messages without those that no guard has passed. Guards of this job judge those of users that none has judged: their job
 * ended before, ran before its agent had guards, or asked its model something else. Among the newest ones, that is: with an
 * older one, all that is older than the next message of a user is left out.
 */
async function judgedEntries(
  attempt: ThinkingAttempt,
  entries: readonly HistoryEntry[],
  asked: Asked,
): Promise<readonly HistoryEntry[]> {
  if (!asked.guards.judges('message')) return entries;
  const users = entries.filter(({ row }) => row?.data === null);
  const older = users.slice(0, -judgedMax).findLastIndex(isUnjudged);
  const oldest = users[older + 1]?.id ?? '';
  if (older >= 0) {
    const which = `only the newest ${judgedMax} messages of users are judged`;
    log(attempt, `Messages that no guard has judged were left out, and what is older: ${which}`);
  }
  const passed: HistoryEntry[] = [];
  for (const entry of entries) {
    const isLeftOut = older >= 0 && entry.row !== undefined && entry.id < oldest;
    if (isLeftOut || entry.row?.dialogue === leftOutMark) continue;
    const made = isUnjudged(entry) ? await judgedEntry(attempt, entry, asked) : entry;
    if (made !== null) passed.push(made);
  }
  return passed;
}

const isUnjudged = ({ row }: HistoryEntry) =>
  row?.data === null && (row.dialogue === 0 || row.dialogue === unjudgedMark);

/**
 * The message as guards have left it; null where one fails for it, and another attempt would fail too, so no later job
 * tries it, or no attempt is left: a later job tries it once, so that its guard may be away, and costs no attempt.
 */
async function judgedEntry(
  attempt: ThinkingAttempt,
  entry: HistoryEntry,
  { prompt, task, guards, scope, parent }: Asked,
): Promise<HistoryEntry | null> {
  const { id, message, row } = entry;
  const { job } = attempt.run;
  if (row === undefined) return entry;
  const { text } = message;
  const { content, task_field: field } = row;
  const given = { on: 'message', text, key: `history/${id}`, parent } as const;
  const isNew = row.dialogue !== unjudgedMark;
  const judged =
    text === prompt
      ? ({ kind: 'passed', text: task, isReplaced: true } as const)
      : await guards.judgeIfPossible(given, scope, 'An earlier message of a user', isNew);
  // A trial changes nothing that others have said.
  const isTrial = job.agent_overrides !== null;
  if (judged.kind === 'unjudged') {
    const mark = judged.isForNow ? unjudgedMark : leftOutMark;
    if (!isTrial) await recordTask(attempt.generations, content, id, mark);
    return null;
  }
  const said = judgedText(judged);
  const isRefused = judged.kind === 'refused';
  const changed =
    text === content
      ? said
      : messageText(inputWithTask(content, field, text, said, isRefused) ?? said);
  if (!isTrial) await recordTask(attempt.generations, changed, id);
  return { id, message: { role: 'user', text: said }, row: { ...row, content: changed } };
}

/** The last summary as a user message, and the messages after it. */
function afterSummary(entries: readonly HistoryEntry<DialogueMessage | Summary>[]) {
  const summary = entries
    .map(({ message }) => message)
    .findLast((message) => message.role === 'summary');
  const kept = entries.flatMap(({ id, message, ...entry }): HistoryEntry[] =>
    message.role === 'summary' || (summary !== undefined && id <= summary.through)
      ? []
      : [{ id, message, ...entry }],
  );
  if (summary === undefined) return { kept, summary };
  const message = { role: 'user', text: summaryText(summary.text) } as const;
  return { kept: [{ id: summary.through, message }, ...kept], summary };
}

/** A message of a user is the input of its job, unless it has steered the run of another one. */
function messageOf({
  content,
  data,
  task_field,
}: {
  content: string;
  data: string | null;
  task_field: string | null;
}): DialogueMessage | Summary {
  if (data === null) return { role: 'user', text: taskIn(content, task_field) };
  const message = JSON.parse(data) as DialogueMessage | Summary;
  // One that has steered a run says also where.
  return message.role === 'user' ? saidOf(message) : message;
}

/** The files of an earlier run's input, beside its task. */
function filesIn(input: string, field: string | null): string[] {
  if (field === null || !input.includes('"files"')) return [];
  try {
    return filesOfInput(JSON.parse(input), field);
  } catch {
    return [];
  }
}
