/**
 * The process that this one replaces, which started it with a channel for messages. This process loads all that it
 * can while the other one still answers, and opens its stores when the other one says so.
 */

/** Set by the process that is replaced. */
export const replacesVariable = 'SKILLWRIGHT_REPLACES';

/** What the new process says. */
export type SuccessorMessage =
  | { readonly state: 'loaded' | 'ready' }
  | { readonly state: 'failed'; readonly reason: string };

export interface Predecessor {
  /** Says that this process is loaded; resolves when it may open its stores, also if the other process has gone. */
  mayStart(): Promise<void>;
  /** Says that this process answers requests; the other one then ends. */
  started(): void;
  /** Says why the start failed; resolves when the message is sent. */
  failed(reason: string): Promise<void>;
}

/** Null in a process that replaces no other. */
export function predecessorOf(
  environment: Readonly<Record<string, string | undefined>>,
): Predecessor | null {
  const send = process.send?.bind(process);
  if (environment[replacesVariable] === undefined || send === undefined) return null;
  const say = (message: SuccessorMessage) =>
    new Promise<void>((resolve) => {
      if (!process.connected) resolve();
      // The other process may have gone: that is no failure of this one.
      else send(message, undefined, {}, () => resolve());
    });
  return {
    async mayStart() {
      const told = new Promise<void>((resolve) => {
        process.once('message', () => resolve());
        process.once('disconnect', resolve);
      });
      await say({ state: 'loaded' });
      await told;
    },
    started() {
      void say({ state: 'ready' }).then(() => {
        if (process.connected) process.disconnect?.();
      });
    },
    failed: (reason) => say({ state: 'failed', reason }),
  };
}
