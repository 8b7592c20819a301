/**
 * Requests over connections that are kept. A receiver may close one while it is idle, and the next
 * request must not fail for that. undici looks at an idle connection before it writes to it, but
 * only in the next check phase of the event loop, which may come without a look at the network in
 * between; and a connection that was reset, unlike one that was closed, fails the request that
 * waits for it. So a request is handed over in a check phase, where the next one comes after a
 * look; and one that was lost before it was written, which undici tells by not having begun it, is
 * handed over a second time.
 *
 * A request that was begun is not sent again, even when not a byte was answered: measured with
 * undici 8.12, a receiver that closes its side still reads, and acts on, what was under way. What
 * remains is the receiver that closes within one journey of a packet, which a short idle time
 * makes rare: most servers keep idle connections for 5 s or longer, or announce their time, which
 * undici heeds.
 */

import { type Dispatcher, errors } from 'undici';
import { EgressError } from './egress-error.ts';

/** For an agent that keeps its connections; bodies must be such that they can be read twice. */
export const overKeptConnections: Dispatcher.DispatcherComposeInterceptor =
  (dispatch) => (options, handler) => {
    let wasBegun = false;
    let isSecondTime = false;
    const handOver = () => void setImmediate(() => dispatch(options, watched));
    const watched: Dispatcher.DispatchHandler = {
      onRequestStart(controller, context) {
        wasBegun = true;
        handler.onRequestStart?.(controller, context);
      },
      onResponseError(controller, error) {
        if (wasBegun || isSecondTime || !isLossOfConnection(error)) {
          handler.onResponseError?.(controller, error);
          return;
        }
        isSecondTime = true;
        handOver();
      },
      onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
      onResponseStarted: () => handler.onResponseStarted?.(),
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onBodySent: (...given) => handler.onBodySent?.(...given),
      onRequestSent: () => handler.onRequestSent?.(),
    };
    handOver();
    return true;
  };

/** The connector fails with an EgressError, undici itself with its own: abort, misuse, its end. */
function isLossOfConnection(error: Error): boolean {
  return !(error instanceof EgressError) && !(error instanceof errors.UndiciError);
}
