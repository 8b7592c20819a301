/**
 * Messages that steer a run: between the tools of a turn and the next call of the model, a request takes what waits for its job.
 * One write of the journal takes the messages and records them, with the request and the turn after which they are said, so a
 * repeated attempt says them there again.
 */
import type { UserMessage } from '../../adapters/models/model.ts';
import { newId } from '../../kernel/ids.ts';
import { addDialogue } from '../conversations/record.ts';
import {
  type SteeringMessage,
  steeringMessages,
  takeMessages,
} from '../jobs/in-conversation/delivered.ts';
import { messageText } from '../jobs/message-text.ts';
import { lookupOf } from '../skills/registry.ts';
import { type ActiveGeneration, report } from './attempt.ts';
import { inputWithTask, judgedText } from './released.ts';
import { type SteeredEntry, steeredAfter } from './steered.ts';
import type { Judged } from './text-guards.ts';

/**
 * Takes the messages that wait for the job, once what its tools gave is recorded. Only the request that continues the conversation
 * takes some: those of called skills are not part of it.
 */
export async function takeSteering(
  active: ActiveGeneration,
  turn: number,
  recorded: () => Promise<unknown>,
): Promise<UserMessage[]> {
  const { attempt, generation } = active;
  const { parts, run, generations } = attempt;
  const { job } = run;
  const field = parts.skills.definition(...lookupOf(job.organization_id, job))?.taskField ?? null;
  if (!generation.isDialogue || field === null) return [];
  const { context } = parts;
  const { database, clock } = context;
  const waiting = await steeringMessages(database.read, job, field, clock.now());
  if (waiting.length === 0) return [];
  await recorded();
  const judged = new Map<string, Judged>();
  for (const one of waiting) {
    const said = await judgeMessage(active, one);
    if (said.kind !== 'unjudged') judged.set(one.jobId, said);
  }
  const passed = waiting.filter(({ jobId }) => judged.has(jobId));
  if (passed.length === 0) return [];
  const now = clock.now();
  const taken = await generations.journal.write(async (tx, isRepeat) => {
    const some = (await takeMessages(context, tx, job, passed, now)).map((one) =>
      judgedMessage(one, field, judged.get(one.jobId)),
    );
    // The first try may have been committed, and its confirmation lost.
    const before = isRepeat ? (await steeredAfter(tx, job, generation.id)).get(turn) : undefined;
    await addDialogue(
      tx,
      some.map(({ text, input }) => {
        const entry: SteeredEntry = { role: 'user', text, generation: generation.id, turn };
        return {
          id: newId(),
          conversation_id: job.conversation_id,
          job_id: job.id,
          at: now,
          role: 'user',
          content: messageText(input),
          data: JSON.stringify(entry),
          isDialogue: true,
        };
      }),
    );
    return [...(before ?? []), ...some.map(({ text }): UserMessage => ({ role: 'user', text }))];
  });
  for (const { text } of taken)
    report(attempt, { type: 'message', data: { role: 'user', content: text } });
  return taken;
}

/** What the guards say about a message. One that they cannot judge becomes the next job of the conversation, and fails alone. */
function judgeMessage({ guards, scope, part }: ActiveGeneration, { jobId, text }: SteeringMessage) {
  const message = { on: 'message', text, key: `message/${jobId}`, parent: part.step } as const;
  return guards.judgeIfPossible(message, scope, 'A message that steers the run');
}

/** The message as the guards have left it. One that they refuse does not end the run: the model and the user get a note. */
function judgedMessage(
  message: SteeringMessage,
  field: string,
  judged: Judged | undefined,
): SteeringMessage {
  if (judged === undefined || (judged.kind === 'passed' && !judged.isReplaced)) return message;
  const { jobId, text: task, input } = message;
  const text = judgedText(judged);
  const changed = inputWithTask(input, field, task, text, judged.kind === 'refused');
  return { jobId, text, input: changed ?? input };
}
