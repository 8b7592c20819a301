/**
 * Approvals as questions to the person at the client: `input_required` with a form, and the answers of the next
 * request. The state that travels with the client names the job and the approvals that were shown, and is
 * signed, so an answer decides only what its person has seen.
 */
import {
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
} from '@modelcontextprotocol/server';
import type { Decision } from '../approvals/approvals.ts';
import { type Caller, hasScopes } from '../kernel/caller.ts';
import { PlatformError } from '../kernel/errors.ts';
import { objectOf } from '../kernel/json.ts';
import type { CallsDeps, Question } from './calls.ts';

const reasonMax = 2_000;
/** Characters of the details that a question shows. */
const detailsMax = 4_000;

/** What travels with the client between two requests of a call. */
export interface CallState {
  readonly job: string;
  /** The approvals that were shown, by the key of their question. */
  readonly asked: Readonly<Record<string, string>>;
}

/** Whether questions can be answered here: the client can ask its person, and the key may decide. */
export function canAnswer({ scopes }: Caller, capabilities: unknown): boolean {
  const elicitation = objectOf(objectOf(capabilities)?.['elicitation']);
  // Without a mode, a client can show forms.
  const hasForms = elicitation !== null && ('form' in elicitation || !('url' in elicitation));
  return hasForms && hasScopes(scopes, ['approvals']);
}

/** The questions as a result, and the state to sign. */
export function questionsAsked(
  jobId: string,
  questions: readonly Question[],
): { state: CallState; result(requestState: string): InputRequiredResult } {
  const asked: Record<string, string> = {};
  for (const { step, approval_id: id } of questions) asked[step in asked ? id : step] = id;
  const keys = new Map(Object.entries(asked).map(([key, id]) => [id, key]));
  const inputRequests = formsOf(questions, ({ approval_id: id }) => keys.get(id) ?? id);
  return {
    state: { job: jobId, asked },
    result: (requestState) => inputRequired({ inputRequests, requestState }),
  };
}

/** A form for each question, by its key. */
export function formsOf(
  questions: readonly Question[],
  keyOf: (question: Question) => string,
): InputRequests {
  return Object.fromEntries(questions.map((question) => [keyOf(question), formOf(question)]));
}

function formOf({ title, details }: Question): InputRequests[string] {
  const shown = Object.keys(details).length === 0 ? '' : `\n\n${JSON.stringify(details, null, 2)}`;
  return {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: `${title}${shown.slice(0, detailsMax)}`,
      requestedSchema: {
        type: 'object',
        properties: {
          reason: {
            type: 'string',
            title: 'Reason',
            description: 'Given to the run. Accept to approve, decline to reject.',
            maxLength: reasonMax,
          },
        },
      },
    },
  } as InputRequests[string];
}

/** What the answers came to: `dismissed` where a person has closed a question without an answer. */
export async function decideAnswered(
  { approvals }: Pick<CallsDeps, 'approvals'>,
  { organizationId, keyId }: Caller,
  { asked }: CallState,
  answers: Readonly<Record<string, unknown>>,
): Promise<'decided' | 'dismissed'> {
  let isDismissed = false;
  for (const [key, approvalId] of Object.entries(asked)) {
    const answer = objectOf(answers[key]);
    if (answer?.['action'] === 'cancel') isDismissed = true;
    const status = statusOf(answer?.['action']);
    if (status === undefined) continue;
    const by = { kind: 'api_key', id: keyId } as const;
    const decision: Decision = { status, by, reason: reasonOf(answer?.['content']) };
    await decideOnce(approvals, organizationId, approvalId, decision);
  }
  return isDismissed ? 'dismissed' : 'decided';
}

function statusOf(action: unknown): Decision['status'] | undefined {
  if (action === 'accept') return 'approved';
  return action === 'decline' ? 'rejected' : undefined;
}

function reasonOf(content: unknown): string | null {
  const reason = objectOf(content)?.['reason'];
  return typeof reason === 'string' && reason !== '' ? reason.slice(0, reasonMax) : null;
}

/** The first decision counts: a later one changes nothing. */
async function decideOnce(
  approvals: CallsDeps['approvals'],
  organizationId: string,
  approvalId: string,
  decision: Decision,
): Promise<void> {
  try {
    await approvals.decide(organizationId, approvalId, decision);
  } catch (error) {
    const isLate = error instanceof PlatformError && ['conflict', 'not_found'].includes(error.code);
    if (!isLate) throw error;
  }
}
