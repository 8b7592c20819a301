/**
 * Turns questions of services (elicitation) into approvals with a form. A stateless service is called again with the
 * answers: its questions and its state are recorded, so the run can be suspended for days. A service that waits for the
 * answer keeps its connection open: the run stays loaded, and a lost attempt asks again.
 */
import { redacted, redactedValue } from '../../core/executors/redaction.ts';
import { dayMs } from '../../kernel/clock.ts';
import { digestOf } from '../../kernel/digest.ts';
import { type Form, readForm } from '../../kernel/form.ts';
import type { Json } from '../../kernel/json.ts';
import { linkOf } from '../../kernel/link.ts';
import { titleCharsMax } from '../../kernel/step-bounds.ts';
import { canonicalJson, cleanText } from '../../kernel/text.ts';
import { shownForm, shownText } from './definitions.ts';
import {
  type PersonAnswer,
  type PersonQuestion,
  questionsMax,
  RemoteQuestions,
  requireFewQuestions,
} from './remote-kind.ts';
import type { RemoteRun } from './remote-run.ts';

/** How long a person has to answer while the run is suspended, and while a connection is open. */
const unloadedMs = 7 * dayMs;
const heldMs = 60 * 60_000;
const messageCharsMax = 4_000;

/** The questions that the call asked in an earlier claim of the job; undefined if it was not made. */
export async function recordedQuestions(
  { handlers, questionSignal, tool }: RemoteRun,
  nth: number,
): Promise<RemoteQuestions | undefined> {
  const step = { kind: 'step', name: nameOf(tool), nth, digest: '' };
  const found = (await handlers.onAsk('find-step', step, questionSignal, null)) as {
    readonly output: RemoteQuestions;
  } | null;
  return found === null
    ? undefined
    : new RemoteQuestions(found.output.questions, found.output.state);
}

/** Records the questions of a call, so that the call is not repeated. */
export async function recordQuestions(
  { handlers, questionSignal, tool }: RemoteRun,
  nth: number,
  { questions, state }: RemoteQuestions,
): Promise<void> {
  requireFewQuestions(questions.length);
  const step = { kind: 'step', name: nameOf(tool), nth, digest: '' };
  const begun = (await handlers.onAsk('begin-step', step, questionSignal, null)) as {
    step: number;
  };
  const output = { questions, state };
  await handlers.onAsk('end-step', { step: begun.step, output }, questionSignal, null);
}

/** The name of the recorded step; differs from the tool's name, which the waits use. */
const nameOf = (tool: string) => `${tool} asks`;

/** Asks all questions of a call at the same time; returns the answers by key. The run may be suspended meanwhile. */
export async function answersTo(
  run: RemoteRun,
  { questions }: RemoteQuestions,
): Promise<Readonly<Record<string, PersonAnswer>>> {
  const { handlers, questionSignal, tool } = run;
  const answers = questions.map(async (question): Promise<[string, PersonAnswer]> => {
    const read = readQuestion(run, question);
    if ('refusal' in read) return [question.key, refused(run, read.refusal)];
    const nth = countQuestion(run, tool);
    const wait = { kind: 'approval', name: tool, nth, ...read, timeoutMs: unloadedMs };
    return [
      question.key,
      answerIn(question, await handlers.onAsk('wait', wait, questionSignal, null)),
    ];
  });
  return Object.fromEntries(await Promise.all(answers));
}

/** Asks a question while the call stays open. */
export async function askHeld(run: RemoteRun, question: PersonQuestion): Promise<PersonAnswer> {
  const { handlers, callSignal, tool } = run;
  const total = [...run.questions.values()].reduce((sum, n) => sum + n, 0);
  if (total >= questionsMax) {
    return refused(run, `It has asked ${questionsMax} questions in this call`);
  }
  const read = readQuestion(run, question);
  if ('refusal' in read) return refused(run, read.refusal);
  // A repeated call that asks the same question gets the same approval.
  const digest = digestOf(canonicalJson(read));
  const wait = { name: tool, digest, nth: countQuestion(run, digest), ...read, timeoutMs: heldMs };
  const end = run.hold();
  if (typeof end === 'string') {
    run.log(`A question of the service was cancelled. ${end}`);
    return { action: 'cancel' };
  }
  try {
    return answerIn(question, await handlers.onAsk('held-wait', wait, callSignal, null));
  } finally {
    end();
  }
}

function countQuestion({ questions }: RemoteRun, what: string): number {
  const nth = (questions.get(what) ?? 0) + 1;
  questions.set(what, nth);
  return nth;
}

function refused(run: RemoteRun, why: string): PersonAnswer {
  run.log(`A question of the service was declined. ${why}`);
  return { action: 'decline' };
}

interface ShownQuestion {
  readonly title: string;
  readonly details: Json;
  readonly fields?: Form;
}

/** Validates a question; returns what to show to the person, or why the question is declined. */
function readQuestion(
  run: RemoteRun,
  question: PersonQuestion,
): ShownQuestion | { refusal: string } {
  const { message, fields, context, link: url } = question;
  if (url !== undefined) return readLink(run, question, url);
  if (fields === null) return { refusal: message };
  // Cleaned first: a secret with an invisible character in it would not be found.
  const read = readForm(redactedValue(run, shownForm(fields)));
  if ('fault' in read) return { refusal: `Its form ${read.fault}` };
  const text = shownMessage(run, message);
  return {
    title: titleOf(`${context['service']} asks: ${text}`),
    details: { ...context, message: text },
    fields: read.form,
  };
}

/** A link that the person is asked to open. Only its address and host are shown; the platform fetches nothing. */
function readLink(
  run: RemoteRun,
  { message, context }: PersonQuestion,
  url: string,
): ShownQuestion | { refusal: string } {
  const link = linkOf(url);
  if (link === null) return { refusal: 'It asks to open an address that no person is sent to' };
  if (redacted(run, link.url) !== link.url) {
    return { refusal: 'It asks to open an address with a secret in it' };
  }
  const text = shownMessage(run, message);
  return {
    title: titleOf(`${context['service']} asks to open a page of ${link.host}: ${text}`),
    details: { ...context, message: text, link },
  };
}

function shownMessage(run: RemoteRun, message: string): string {
  return cleanText(redacted(run, shownText(message)).slice(0, messageCharsMax));
}

function titleOf(text: string): string {
  const title = [...text.replaceAll(/\s+/g, ' ')];
  const cut = title.length > titleCharsMax;
  return cut ? `${title.slice(0, titleCharsMax - 1).join('')}…` : title.join('');
}

function answerIn({ link }: PersonQuestion, answer: unknown): PersonAnswer {
  const { value } = answer as {
    readonly value: { approved: boolean; by: object | null; answer?: Json };
  };
  if (value.approved) {
    return link === undefined
      ? { action: 'accept', content: value.answer ?? {} }
      : { action: 'accept' };
  }
  // Without a decision by a person the question was cancelled, not declined.
  return { action: value.by === null ? 'cancel' : 'decline' };
}
