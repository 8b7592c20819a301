/** The questions of a pass: each is answered from the journal or by the script, in the order of a replay. */
import type { ChildMessage } from '../../core/executors/protocol.ts';
import { answerJson, readRefusal } from '../../core/executors/questions.ts';
import { JournalFault } from '../../core/journal/records.ts';
import type { WaitScope } from '../../core/journal/wait-scope.ts';
import { isMemoryVerb } from '../../core/memories/memory-verbs.ts';
import { answerGenerate, endingOf } from './answers.ts';
import { beginWait, resultOf } from './journal.ts';
import { askMemory } from './memory.ts';
import { type Pass, runId } from './pass-state.ts';
import { ScriptError } from './types.ts';

type Ask = Extract<ChildMessage, ['ask', ...unknown[]]>;

/** Never rejects: where the script has no answer, the pass does. */
export async function answer(pass: Pass, ask: Ask): Promise<void> {
  const [, , id] = ask;
  pass.asked += 1;
  try {
    const value = JSON.parse(answerJson(await answerAsk(pass, ask))) as unknown;
    if (!pass.over.signal.aborted) pass.deliver([['answer', runId, id, value]]);
  } catch (error) {
    if (pass.over.signal.aborted) return;
    if (error instanceof ScriptError) pass.ended.reject(error);
    else if (error instanceof JournalFault) {
      const { code, message, retryable } = error;
      pass.ended.resolve({ kind: 'failed', code, message, retryable, stack: null });
    } else pass.deliver([['refuse', runId, id, readRefusal(error)]]);
  }
}

async function answerAsk(pass: Pass, ask: Ask): Promise<unknown> {
  const [, , , kind, payload, step] = ask;
  const scope = (step === null ? undefined : pass.scopes.get(step)) ?? pass.scope;
  if (kind === 'wait') return answerWait(pass, payload, step, scope);
  const done = scope.work();
  try {
    return await answerWork(pass, ask, scope);
  } finally {
    done();
  }
}

async function answerWork(pass: Pass, ask: Ask, scope: WaitScope): Promise<unknown> {
  const { deps, steps, order } = pass;
  const [, , , kind, payload, step] = ask;
  if (kind === 'begin-step') return answerBeginStep(pass, payload, step, scope);
  if (kind === 'end-step') {
    const ended = await order.write(
      (place) => steps.end(payload, place, false),
      steps.placeBefore(payload),
    );
    const { step: n } = payload as { step: number };
    pass.scopes.get(n)?.close();
    pass.scopes.delete(n);
    return ended;
  }
  if (kind === 'generate') return answerGenerate(deps.answers, payload, steps.partOf(step));
  if (isMemoryVerb(kind)) return askMemory(deps.memory, kind, payload, steps.partOf(step).note);
  throw new ScriptError(`runSkill cannot answer ${kind}`);
}

async function answerBeginStep(
  pass: Pass,
  payload: unknown,
  step: number | null,
  scope: WaitScope,
): Promise<unknown> {
  const turn = pass.order.enter();
  try {
    const begun = await pass.steps.begin(payload, step, (end) => turn.recorded(end));
    if ('step' in begun) {
      const opened = scope.open();
      // What a named step does is not seen, so it never counts as waiting.
      if ((payload as { kind?: unknown }).kind === 'step') opened.work();
      pass.scopes.set(begun.step, opened);
      const { kind, name } = payload as { kind: string; name: string };
      const settings = kind === 'skill' ? pass.deps.settingsOf(name) : undefined;
      if (settings !== undefined) return { ...begun, settings };
    }
    return begun;
  } finally {
    turn.notRecorded();
  }
}

async function answerWait(
  pass: Pass,
  payload: unknown,
  step: number | null,
  scope: WaitScope,
): Promise<unknown> {
  const { deps, order, steps, waits } = pass;
  const turn = order.enter();
  const begun = scope.work();
  let close: () => void = () => {};
  try {
    const wanted = steps.readWait(payload, step);
    const row = await beginWait(deps.answers.journal, wanted, (input, dueAt) =>
      endingOf(deps.answers, wanted, input, dueAt),
    );
    const { n } = row;
    if (row.status === 'waiting') {
      turn.notRecorded();
      const end = Promise.withResolvers<void>();
      waits.set(n, end.resolve);
      close = scope.wait();
      begun();
      await end.promise;
      // The run is not dropped before it was told the end.
      const telling = scope.work();
      await turn.ended(n);
      telling();
    } else await turn.recorded({ n, at: row.at, place: row.told });
    const result = resultOf(row);
    if ('error' in result) throw Object.assign(new Error(), result.error, { at: row.at });
    return { value: result.value, at: row.at };
  } finally {
    turn.notRecorded();
    begun();
    close();
  }
}
