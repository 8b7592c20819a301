/** All that is kept of a user, one line of JSON for each thing. Reads a few rows at a time, however much there is. */
import { noTokenSums } from '../../adapters/http/schemas.ts';
import { LostBytes } from '../../core/files/checked-bytes.ts';
import { fileView } from '../../core/files/files.ts';
import { jobView } from '../../core/jobs/job-views.ts';
import { timestamp } from '../../kernel/clock.ts';
import {
  conversationsOf,
  isBegunFor,
  jobsById,
  jobsNaming,
  messagesAfter,
  type OfUser,
} from './user-data.store.ts';
import type { UserData } from './user-data.ts';

/** Rows read at a time: inputs and outputs may have a megabyte each. */
const rowsMax = 50;
const jobsMax = 5;

/** Bytes of a file in one line: whole groups of base64. */
const partBytes = 192 * 1024;

type Line = {
  readonly type:
    | 'memory'
    | 'profile'
    | 'file'
    | 'file-part'
    | 'file-lost'
    | 'conversation'
    | 'message'
    | 'job'
    | 'end';
} & Record<string, unknown>;

/** The last line has the numbers of the others: an export without it is not whole. */
export async function* exportUser(data: UserData, user: OfUser): AsyncGenerator<string> {
  const counts = { memories: 0, profiles: 0, files: 0, conversations: 0, messages: 0, jobs: 0 };
  const counted = {
    memory: 'memories',
    profile: 'profiles',
    file: 'files',
    conversation: 'conversations',
    message: 'messages',
    job: 'jobs',
  } as const;
  for await (const line of linesOf(data, user)) {
    if (line.type in counted) counts[counted[line.type as keyof typeof counted]] += 1;
    yield `${JSON.stringify(line)}\n`;
  }
  yield `${JSON.stringify({ type: 'end', user_id: user.userId, ...counts } satisfies Line)}\n`;
}

async function* linesOf(data: UserData, user: OfUser): AsyncGenerator<Line> {
  const { organizationId, userId } = user;
  for await (const memory of data.memories.ofUser(organizationId, userId)) {
    yield { type: 'memory', ...memory };
  }
  for (const profile of await data.memories.profilesOfUser(organizationId, userId)) {
    yield { type: 'profile', ...profile };
  }
  for await (const { file, bytes } of data.files.ofUser(organizationId, userId)) {
    yield { type: 'file', ...fileView(file) };
    yield* partsOf(file.id, bytes);
  }
  const { read } = data.database;
  for (let after = ''; ; ) {
    const conversations = await conversationsOf(read, user, after, rowsMax);
    for (const { created_at, updated_at, ...conversation } of conversations) {
      const moments = { created_at: timestamp(created_at), updated_at: timestamp(updated_at) };
      yield { type: 'conversation', ...conversation, ...moments };
      yield* linesOfConversation(data, user, conversation.id);
    }
    const last = conversations.at(-1);
    if (last === undefined) break;
    after = last.id;
  }
  yield* jobsElsewhere(data, user);
}

/** The bytes of a file, in lines of which none is long. The last line is `file-lost` where these are not all of them. */
async function* partsOf(id: string, bytes: AsyncIterable<Uint8Array> | null): AsyncGenerator<Line> {
  let kept = Buffer.alloc(0);
  let n = 0;
  const line = (part: Buffer): Line => ({
    ...{ type: 'file-part', file_id: id, n: n++ },
    base64: part.toString('base64'),
  });
  try {
    if (bytes === null) throw new LostBytes('it has no bytes of a file');
    for await (const piece of bytes) {
      kept = Buffer.concat([kept, piece]);
      for (; kept.length >= partBytes; kept = kept.subarray(partBytes)) {
        yield line(kept.subarray(0, partBytes));
      }
    }
    if (kept.length > 0) yield line(kept);
  } catch (error) {
    if (!(error instanceof LostBytes)) throw error;
    yield { type: 'file-lost', file_id: id };
  }
}

async function* linesOfConversation(
  data: UserData,
  user: OfUser,
  id: string,
): AsyncGenerator<Line> {
  let job = '';
  for (let after = ''; ; ) {
    const messages = await messagesAfter(data.database.read, id, after, rowsMax);
    for (const { created_at, ...message } of messages) {
      // The messages of a conversation's jobs follow one another.
      if (message.job_id !== job) yield* jobLines(data, user, [message.job_id]);
      job = message.job_id;
      const at = { conversation_id: id, created_at: timestamp(created_at) };
      yield { type: 'message', ...message, ...at };
    }
    const last = messages.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

/** Jobs for the user that continued the conversation of another, or whose conversation is gone. */
async function* jobsElsewhere(data: UserData, user: OfUser): AsyncGenerator<Line> {
  const { read } = data.database;
  for (let after = ''; ; ) {
    const jobs = await jobsNaming(read, user, after, jobsMax);
    for (const { id, conversation_id } of jobs) {
      if (!(await isBegunFor(read, user, conversation_id))) yield* jobLines(data, user, [id]);
    }
    const last = jobs.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

async function* jobLines(
  { database }: UserData,
  { organizationId }: OfUser,
  ids: readonly string[],
): AsyncGenerator<Line> {
  for (const row of await jobsById(database.read, organizationId, ids)) {
    const {
      token_stats: _,
      nested_token_stats: _nested,
      total_token_stats: _total,
      ...job
    } = jobView(row, noTokenSums);
    yield { type: 'job', ...job };
  }
}
