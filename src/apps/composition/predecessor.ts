/**
 * The process that this one replaces, which started it with a channel for messages. This process loads all that it
 * can while the other one still answers, and opens its stores when the other one allows it.
 */

/** Set by the process that is replaced. */
export const replacesVariable = 'SKILLWRIGHT_REPLACES';

/** A message of the new process. */
export type SuccessorMessage =
  | { readonly state: 'loaded' | 'ready' }
  | { readonly state: 'failed'; readonly reason: string };

export class Predecessor {
  /** Reports that this process is loaded; resolves when it may open its stores, also if the other process has gone. */
  async mayStart(): Promise<void> {
    const answered = new Promise<void>((resolve) => {
      process.once('message', () => resolve());
      process.once('disconnect', resolve);
    });
    await send({ state: 'loaded' });
    await answered;
  }

  /** Reports that this process answers requests; the other one then ends. */
  async started(): Promise<void> {
    await send({ state: 'ready' });
    if (process.connected) process.disconnect?.();
  }

  /** Reports why the start failed; resolves when the message is sent. */
  failed(reason: string): Promise<void> {
    return send({ state: 'failed', reason });
  }
}

/** Null in a process that replaces no other. */
export function predecessorOf(
  environment: Readonly<Record<string, string | undefined>>,
): Predecessor | null {
  const isSuccessor = environment[replacesVariable] !== undefined && process.send !== undefined;
  return isSuccessor ? new Predecessor() : null;
}

function send(message: SuccessorMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // The other process may have gone: that is no failure of this one.
  if (process.connected) process.send?.(message, undefined, {}, () => resolve());
  else resolve();
  return promise;
}
