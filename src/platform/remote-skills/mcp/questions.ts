/**
 * What servers ask their callers (elicitation), as questions to a person, in both forms: a request in the middle of a
 * call, and since the revision 2026-07-28 a result with which the call is made again.
 */
import {
  type ElicitRequestFormParams,
  type ElicitRequestURLParams,
  type InputRequiredResult,
  ProtocolError,
} from '@modelcontextprotocol/client';
import { isObject, type Json, objectOf } from '../../../kernel/json.ts';
import {
  type PersonQuestion,
  type RemoteAnswers,
  RemoteFault,
  RemoteQuestions,
  requireFewQuestions,
} from '../remote-kind.ts';

/** Characters of a server's state. */
const stateCharsMax = 256 * 1024;
/** Bytes of the tool's input that a person is shown. */
const inputBytesMax = 16 * 1024;

/** The call in which a server asks. */
export interface QuestionPlace {
  readonly service: string;
  readonly tool: string;
  readonly input: unknown;
}

export function inputRequired(result: unknown): result is InputRequiredResult {
  return isObject(result) && result['resultType'] === 'input_required';
}

/** What a result asks before the call is made again. Throws RemoteFault for what no person can be asked. */
export function questionsOf(
  { inputRequests = {}, requestState }: InputRequiredResult,
  place: QuestionPlace,
): RemoteQuestions {
  if (requestState !== undefined && requestState.length > stateCharsMax) {
    throw new RemoteFault(`The server ${place.service} has a state of more than 256 KiB`);
  }
  const requests = Object.entries(inputRequests);
  requireFewQuestions(requests.length);
  const questions = requests.map(([key, request]) => {
    const { method, params } = request as { method: string; params?: Json };
    if (method !== 'elicitation/create') {
      const message = `The server ${place.service} asks its caller for ${method}, which the platform does not offer`;
      throw new RemoteFault(message);
    }
    return questionOf(key, (params ?? {}) as unknown as ElicitRequestFormParams, place);
  });
  return new RemoteQuestions(questions, requestState ?? null);
}

export function questionOf(
  key: string,
  params: ElicitRequestFormParams | ElicitRequestURLParams,
  { service, tool, input }: QuestionPlace,
): PersonQuestion {
  const isShort = Buffer.byteLength(JSON.stringify(input) ?? '') <= inputBytesMax;
  const context = { service, tool, ...(isShort && { input }) };
  const { message } = params;
  if (params.mode === 'url') {
    return { key, message, fields: null, link: params.url, context };
  }
  return { key, message, fields: params.requestedSchema, context };
}

/**
 * The pages that a person has to open before a call is made again, as a server of 2025 refuses it (-32042); undefined for
 * any other failure.
 */
export function questionsInFault(
  error: unknown,
  place: QuestionPlace,
): RemoteQuestions | undefined {
  const isAsking = error instanceof ProtocolError && error.code === urlElicitationRequired;
  const { elicitations } = (isAsking && objectOf(error.data)) || {};
  if (!Array.isArray(elicitations) || elicitations.length === 0) return undefined;
  requireFewQuestions(elicitations.length);
  const questions = elicitations.map((one, i) => {
    const { message, url } = objectOf(one) ?? {};
    const params = {
      mode: 'url',
      message: String(message ?? ''),
      url: String(url),
      elicitationId: '',
    };
    return questionOf(String(i), params as ElicitRequestURLParams, place);
  });
  return new RemoteQuestions(questions, null);
}

const urlElicitationRequired = -32_042;

/** Throws RemoteFault where a person did not open a page that the call needs. */
export function requireOpened({ answers }: RemoteAnswers): void {
  if (Object.values(answers).every(({ action }) => action === 'accept')) return;
  throw new RemoteFault('The tool needs a page to be opened, and no person has opened it');
}

/** The parameters of a call that is made again with answers. */
export function answersOf({ answers, state }: RemoteAnswers): Json {
  return {
    ...(Object.keys(answers).length > 0 && { inputResponses: answers }),
    ...(state !== null && { requestState: state }),
  };
}
