/** The calls of models as they are sent, and as they are kept: with names of files in place of their bytes. */
import type { TakenSettings } from '../../adapters/models/known-models.ts';
import {
  type DialogueMessage,
  type ModelCall,
  ModelError,
  type ToolOffer,
} from '../../adapters/models/model.ts';
import { type ProviderSettings, speaksChat } from '../../adapters/models/providers.ts';
import { bodyOfCall } from '../../adapters/models/sent-body.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { log, type ThinkingAttempt } from './attempt.ts';
import { cannotSee, withFileNames } from './files-of-calls.ts';
import type { Generation } from './generation.ts';
import { withLastTurnNote } from './last-turn.ts';
import { filesIn } from './message-files.ts';

/** A turn of a model, as far as what it is sent depends on it. */
export interface SentTurn {
  readonly attempt: ThinkingAttempt;
  readonly generation: Generation;
  readonly model: string;
  readonly messages: readonly DialogueMessage[];
  readonly tools: readonly ToolOffer[];
  /** Whether the model has to answer, because no turn may follow. */
  readonly isLast: boolean;
}

/** How a call reaches its provider, and what the model takes of its settings. */
export interface CallWay {
  readonly settings: ProviderSettings | undefined;
  readonly taken: TakenSettings;
}

/** Whether the model is sent files, as far as is known. */
export function seesFiles({
  attempt,
  generation: { withoutFiles },
  model,
}: Pick<SentTurn, 'attempt' | 'generation' | 'model'>) {
  return attempt.parts.known.of(model).images !== false && !withoutFiles.has(model);
}

/** The way of a call, with a log line for the settings that the model does not take. Throws a ModelError. */
export function wayOf(turn: SentTurn, settings: ProviderSettings | undefined): CallWay {
  const { attempt, generation, model, messages, tools } = turn;
  const { call, leftOut } = generation;
  const isOffered = tools.length > 0;
  const isChatWithTools = isOffered && speaksChat(model, settings);
  const known = attempt.parts.known.takenBy(model, call, isChatWithTools);
  const taken = { ...known, takesFiles: seesFiles(turn) };
  const unseen = taken.takesFiles ? [] : messages.flatMap(filesIn);
  const notes = [
    ...taken.notes,
    ...(isOffered && !taken.takesTools ? [`${model} takes no tools`] : []),
    ...unseen.map((file) => cannotSee(model, file)),
  ];
  for (const sentence of notes) {
    if (!leftOut.has(sentence)) log(attempt, sentence);
    leftOut.add(sentence);
  }
  return { settings, taken };
}

/** The call of a turn. `sent`: its messages with their files; `output`: most tokens of the answer. */
export function callOfTurn(
  { generation, model, tools, isLast }: SentTurn,
  { settings, taken }: CallWay,
  sent: readonly DialogueMessage[],
  output: number,
): Omit<ModelCall, 'onText'> {
  return {
    ...generation.call,
    temperature: taken.temperature,
    effort: taken.effort,
    thinking: taken.thinking,
    mayReason: taken.mayReason,
    schema: taken.takesSchema ? generation.call.schema : undefined,
    model,
    settings,
    messages: isLast && tools.length > 0 ? withLastTurnNote(sent) : sent,
    tools: taken.takesTools ? tools : [],
    mustAnswer: isLast,
    maxOutputTokens: Math.min(output, taken.outputTokens),
  };
}

/** What is sent, known once the tokens of the answer are. */
export class PromptOfCall {
  readonly #bodyFor: (output: number) => Json;

  constructor(bodyFor: (output: number) => Json) {
    this.#bodyFor = bodyFor;
  }

  /** The body for an answer of so many tokens at most; null where no request can be made. */
  bodyFor(output: number): Json | null {
    try {
      return this.#bodyFor(output);
    } catch (error) {
      return noPrompt(error);
    }
  }
}

/** Null where no request can be made. */
export type PromptOf = PromptOfCall | null;

/** What a turn sends, where it is to be kept. */
export async function promptOfTurn(turn: SentTurn): Promise<PromptOf | undefined> {
  const { attempt, generation, model, messages } = turn;
  if (!generation.keepsPrompts) return undefined;
  return promptFrom(attempt, model, async (settings) => {
    const way = wayOf(turn, settings);
    const { takesFiles } = way.taken;
    const sent = await withFileNames(attempt, { messages, model, takesFiles });
    return (output) => callOfTurn(turn, way, sent, output);
  });
}

/** The same of any call of a model. */
export async function promptFrom(
  { parts, run }: ThinkingAttempt,
  model: string,
  callFor: (
    settings: ProviderSettings | undefined,
  ) => Promise<(output: number) => Omit<ModelCall, 'onText'>>,
): Promise<PromptOf> {
  try {
    const settings = await parts.credentials.settingsForModel(run.job.organization_id, model);
    const call = await callFor(settings);
    return new PromptOfCall((output) => bodyOfCall({ ...call(output), onText: () => {} }));
  } catch (error) {
    return noPrompt(error);
  }
}

/** The call itself fails for the same reason, on record. */
function noPrompt(error: unknown): null {
  if (error instanceof ModelError || error instanceof PlatformError) return null;
  throw error;
}
