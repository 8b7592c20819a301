/** Which turn of a conversation a message belongs to, and which message asked for it. No I/O. */
import type { Message } from '../api/conversations.ts';
import { hasEnded, type JobListItem, type JobStep } from '../api/jobs.ts';

/** The messages of one job on a page of a transcript; the jobs of a conversation run one after the other. */
export interface Turn {
  /** Undefined when the job is older than the jobs that are known. */
  readonly job: JobListItem | undefined;
  readonly messages: readonly Message[];
  /** Whether the last message of the turn is on this page. */
  readonly isWhole: boolean;
}

/** A page of messages by turns. `jobs` are the conversation's, newest first. */
export function turnsOf(
  messages: readonly Message[],
  jobs: readonly JobListItem[],
  isLastPage: boolean,
): Turn[] {
  const oldestFirst = inOrder(jobs);
  const turns: { job: JobListItem | undefined; messages: Message[]; isWhole: boolean }[] = [];
  let next = 0;
  for (const message of messages) {
    while (mayBeOf(oldestFirst[next], oldestFirst[next - 1], message, turns.length === 0))
      next += 1;
    const job = oldestFirst[next - 1];
    const turn = turns.at(-1);
    if (turn !== undefined && turn.job === job) turn.messages.push(message);
    else {
      // The page before cannot know that its last turn had ended.
      const before = oldestFirst[next - 2];
      const isBegun = message.created_at === job?.created_at;
      if (turn !== undefined) turn.isWhole = true;
      else if (isBegun && before) turns.push({ job: before, messages: [], isWhole: true });
      turns.push({ job, messages: [message], isWhole: false });
    }
  }
  const last = turns.at(-1);
  if (last !== undefined) last.isWhole = isLastPage;
  return turns;
}

/** Jobs in the order in which they ran: one may have waited for another, or have interrupted it. */
function inOrder(jobs: readonly JobListItem[]): readonly JobListItem[] {
  const startOf = ({ started_at }: JobListItem) => started_at ?? '~';
  return jobs
    .toReversed()
    .sort((a, b) => Number(startOf(a) > startOf(b)) - Number(startOf(a) < startOf(b)));
}

/** Whether a message may be of a job: this was there, and the one before it had ended. */
function mayBeOf(
  job: JobListItem | undefined,
  before: JobListItem | undefined,
  { created_at, role }: Message,
  isFirst: boolean,
): boolean {
  if (job === undefined || job.created_at > created_at) return false;
  if (before === undefined || before.finished_at === undefined) return true;
  const end = before.finished_at;
  // The output of a job is recorded a moment after its end; a page may begin within a turn.
  return end !== null && (role === 'user' ? end <= created_at : isFirst && end < created_at);
}

/** Whether a turn ended without an answer, which its messages do not show. */
export const isBroken = ({ job, isWhole }: Turn): boolean =>
  isWhole && job !== undefined && hasEnded(job) && job.status !== 'completed';

/**
 * Whether the order of the messages may mislead about who asked for what: a tool's result after the
 * second answer may belong to the first one.
 */
export function needsSteps({ messages }: Turn): boolean {
  const lastTool = messages.findLastIndex(({ role }) => role === 'tool');
  return messages.slice(0, lastTool + 1).filter(({ role }) => role === 'assistant').length > 1;
}

/** A message with the actions that it caused: tools of an answer, calls of models by a tool. */
export interface Entry {
  readonly message: Message;
  readonly caused: readonly Entry[];
}

/** The turn without its tools, if their order may mislead: for as long as its steps are being read. */
export const withoutMisleadingTools = (turn: Turn): Turn =>
  needsSteps(turn)
    ? { ...turn, messages: turn.messages.filter(({ role }) => role !== 'tool') }
    : turn;

/** The messages of a turn below those that caused them; without steps, by their order. */
export function entriesOf(
  messages: readonly Message[],
  steps: readonly JobStep[] | undefined,
): readonly Entry[] {
  const parentOf = steps === undefined ? parentByOrder(messages) : parentBySteps(messages, steps);
  const made = new Map(messages.map((message) => [message.id, { message, caused: [] as Entry[] }]));
  const roots: Entry[] = [];
  for (const [id, entry] of made) {
    const parent = made.get(parentOf(id) ?? '');
    (parent?.caused ?? roots).push(entry);
  }
  return roots;
}

type ParentOf = (messageId: string) => string | undefined;

/** A tool was called by the answer before it. */
function parentByOrder(messages: readonly Message[]): ParentOf {
  const parents = new Map<string, string | undefined>();
  let answer: string | undefined;
  for (const { id, role } of messages) {
    if (role === 'tool') parents.set(id, answer);
    else answer = role === 'assistant' ? id : undefined;
  }
  return (id) => parents.get(id);
}

/** The nearest parent step with a message here; an active tool has none yet. */
function parentBySteps(messages: readonly Message[], steps: readonly JobStep[]): ParentOf {
  const ids = new Set(messages.map(({ id }) => id));
  const byNumber = new Map(steps.map((step) => [step.step, step]));
  const byMessage = new Map(steps.map((step) => [step.message_id, step]));
  const above = ({ parent_step_id: parent }: JobStep) =>
    parent === null ? undefined : byNumber.get(parent);
  return (id) => {
    const own = byMessage.get(id);
    let step = own && above(own);
    while (step !== undefined && !ids.has(step.message_id ?? '')) step = above(step);
    return step?.message_id ?? undefined;
  };
}
