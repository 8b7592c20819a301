/**
 * What servers ask their callers (elicitation), as questions to a person, in both forms: a request in the middle of a
 * call, and since the revision 2026-07-28 a result with which the call is made again.
 */
import type { ElicitRequestFormParams, InputRequiredResult } from '@modelcontextprotocol/client';
import { isObject, type Json } from '../../kernel/json.ts';
import {
  type PersonQuestion,
  type RemoteAnswers,
  RemoteFault,
  RemoteQuestions,
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
  const questions = Object.entries(inputRequests).map(([key, request]) => {
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
  { mode = 'form', message, requestedSchema }: ElicitRequestFormParams | UrlParams,
  { service, tool, input }: QuestionPlace,
): PersonQuestion {
  const isShort = Buffer.byteLength(JSON.stringify(input) ?? '') <= inputBytesMax;
  const context = { service, tool, ...(isShort && { input }) };
  return mode === 'form'
    ? { key, message, fields: requestedSchema, context }
    : { key, message: urlMode, fields: null, context };
}

type UrlParams = {
  readonly mode: 'url';
  readonly message: string;
  readonly requestedSchema?: never;
};

const urlMode = 'It asks to open an address in a browser, which the platform does not pass on.';

/** What goes with a call that is made again. */
export function answersOf({ answers, state }: RemoteAnswers): Json {
  return {
    ...(Object.keys(answers).length > 0 && { inputResponses: answers }),
    ...(state !== null && { requestState: state }),
  };
}
