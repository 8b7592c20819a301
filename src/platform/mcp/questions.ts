/**
 * Approvals as questions to the person at the client: `input_required` with a form, and the answers of the next
 * request. The state that travels with the client names the job and the approvals that were shown, and is
 * signed, so an answer decides only what its person has seen.
 */
import type { InputRequests } from '@modelcontextprotocol/server';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { type Json, objectOf } from '../../kernel/json.ts';
import { issuesText } from '../../kernel/json-schema.ts';
import type { Approvals, Decision } from '../approvals/approvals.ts';
import type { Question } from './calls.ts';

const reasonMax = 2_000;
/** Characters of the details that a question shows. */
const detailsMax = 4_000;

/** What travels with the client between two requests of a call. */
export interface CallState {
  readonly job: string;
  /** The approvals that were shown, by the key of their question. */
  readonly asked: Readonly<Record<string, string>>;
}

/** Whether the client can ask its person, and its key may decide. */
export function canAnswer({ scopes }: Caller, capabilities: unknown): boolean {
  const elicitation = objectOf(objectOf(capabilities)?.['elicitation']);
  // Without a mode, a client can show forms.
  const hasForms = elicitation !== null && ('form' in elicitation || !('url' in elicitation));
  return hasForms && hasScopes(scopes, ['approvals']);
}

/** Whether a client can ask a question of its person: a page that is to be opened is never part of a form. */
export function canAsk(capabilities: unknown): (question: Question) => boolean {
  const elicitation = objectOf(objectOf(capabilities)?.['elicitation']);
  const opensPages = elicitation !== null && 'url' in elicitation;
  return ({ link }) => link === null || opensPages;
}

/** Why answers were refused, by approval; those are asked again. */
export type Refusals = ReadonlyMap<string, string>;

/** The questions, and the state to sign. */
export function questionsAsked(
  jobId: string,
  questions: readonly Question[],
  refusals?: Refusals,
): { state: CallState; inputRequests: InputRequests } {
  const asked: Record<string, string> = {};
  for (const { step, approval_id: id } of questions) asked[step in asked ? id : step] = id;
  const keys = new Map(Object.entries(asked).map(([key, id]) => [id, key]));
  const keyOf = ({ approval_id: id }: Question) => keys.get(id) ?? id;
  return { state: { job: jobId, asked }, inputRequests: formsOf(questions, keyOf, refusals) };
}

/** A form for each question, by its key. */
export function formsOf(
  questions: readonly Question[],
  keyOf: (question: Question) => string,
  refusals?: Refusals,
): InputRequests {
  const entries = questions.map((question) => {
    const refused = refusals?.get(question.approval_id);
    return [keyOf(question), formOf(question, refused)];
  });
  return Object.fromEntries(entries);
}

/** The form of the approval itself, or else one that asks for the reason of the decision. */
function formOf(
  { approval_id: elicitationId, title, details, fields, link }: Question,
  refused: string | undefined,
): InputRequests[string] {
  if (link !== null) {
    const params = { mode: 'url', message: title, url: link.url, elicitationId };
    return { method: 'elicitation/create', params } as InputRequests[string];
  }
  const shown = Object.keys(details).length === 0 ? '' : `\n\n${JSON.stringify(details, null, 2)}`;
  const again = refused === undefined ? '' : `\n\nThe answer was refused: ${refused}`;
  return {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: `${title}${shown.slice(0, detailsMax)}${again}`,
      requestedSchema: fields ?? reasonForm,
    },
  } as InputRequests[string];
}

const reasonForm = {
  type: 'object',
  properties: {
    reason: {
      type: 'string',
      title: 'Reason',
      description: 'Given to the run. Accept to approve, decline to reject.',
      maxLength: reasonMax,
    },
  },
};

/** What became of answers. */
export interface Answered {
  /** Whether a person has closed a question without an answer. */
  readonly isDismissed: boolean;
  readonly refusals: Refusals;
}

/** Decides the approvals that are answered. */
export async function decideAnswered(
  approvals: Approvals,
  { organizationId, keyId }: Caller,
  { asked }: Pick<CallState, 'asked'>,
  answers: Readonly<Record<string, unknown>>,
): Promise<Answered> {
  let isDismissed = false;
  const refusals = new Map<string, string>();
  for (const [key, approvalId] of Object.entries(asked)) {
    const answer = objectOf(answers[key]);
    if (answer?.['action'] === 'cancel') isDismissed = true;
    const status = statusOf(answer?.['action']);
    if (status === undefined) continue;
    const by = { kind: 'api_key', id: keyId } as const;
    const content = objectOf(answer?.['content']) ?? {};
    const decided = { status, by, content };
    const refused = await decideOnce(approvals, organizationId, approvalId, decided);
    if (refused !== null) refusals.set(approvalId, refused);
  }
  return { isDismissed, refusals };
}

function statusOf(action: unknown): Decision['status'] | undefined {
  if (action === 'accept') return 'approved';
  return action === 'decline' ? 'rejected' : undefined;
}

function reasonOf({ reason }: Json): string | null {
  return typeof reason === 'string' && reason !== '' ? reason.slice(0, reasonMax) : null;
}

/** The first decision counts: a later one changes nothing. Returns why an answer does not fit its form. */
async function decideOnce(
  approvals: Approvals,
  organizationId: string,
  approvalId: string,
  { status, by, content }: Pick<Decision, 'status' | 'by'> & { readonly content: Json },
): Promise<string | null> {
  try {
    const { fields } = await approvals.get(organizationId, approvalId);
    const isFilledIn = fields !== null && status === 'approved';
    const given = isFilledIn ? { answer: content } : { reason: reasonOf(content) };
    await approvals.decide(organizationId, approvalId, { status, by, reason: null, ...given });
    return null;
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    if (error.code === 'validation_error') return issuesText(error.extras.details ?? []);
    if (['conflict', 'not_found'].includes(error.code)) return null;
    throw error;
  }
}
