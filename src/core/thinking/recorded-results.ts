/**
 * Recorded results of tools, which a model can read again by the id of the call. A result that is too long for a
 * message is stored whole with its step, until the results of the claim reach a limit.
 */

import type { ToolMessage } from '../../adapters/models/model.ts';
import { findToolMessage, findToolResult } from '../journal/step-queries.ts';
import type { GenerationParts, Generations } from './generations.ts';
import { withoutMark } from './guard-records.ts';

/** Bytes of the whole results that one claim keeps. */
const keptMax = 32 * 1024 * 1024;

/** Whether a result is kept whole; counts its bytes. */
export function keepsResult(generations: Generations, text: string): boolean {
  const bytes = generations.keptBytes + Buffer.byteLength(text);
  if (bytes > keptMax) return false;
  generations.keptBytes = bytes;
  return true;
}

/**
 * The whole result of a call in the conversation of the job; undefined if there is none. `known` is its message if
 * the dialogue has it. Ids are unique in the dialogue; among recorded calls of one id the last one is read.
 */
export async function findResult(
  { parts, job }: Generations,
  callId: string,
  known: ToolMessage | undefined,
): Promise<string | undefined> {
  const message = known ?? (await messageOf(parts, job.conversation_id, callId));
  if (message?.whole === undefined) return message?.text;
  const { job: job_id, step: n } = message.whole;
  const row = await findToolResult(parts.context.database.read, { job_id, n });
  return row?.result ? (JSON.parse(row.result) as string) : message.text;
}

async function messageOf(
  { context, conversations }: GenerationParts,
  conversationId: string,
  callId: string,
): Promise<ToolMessage | undefined> {
  const call = { conversation_id: conversationId, call_id: callId };
  const id = (await findToolMessage(context.database.read, call))?.message_id;
  if (id == null) return undefined;
  const json = (await conversations.dataOf(conversationId, [id])).get(id);
  if (json === undefined) return undefined;
  const { message, isHeld } = withoutMark(JSON.parse(json) as ToolMessage);
  return isHeld ? undefined : message;
}
