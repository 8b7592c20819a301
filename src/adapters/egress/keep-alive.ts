/**
 * Requests over keep-alive connections. A receiver may close an idle connection, and the next request
 * must not fail because of that. undici checks an idle connection before it writes to it, but in the next
 * check phase of the event loop, and the loop may not have polled the network before it. Also, a request
 * that waits for a connection fails when the connection is reset, though not when it is closed. So this
 * interceptor dispatches each request in a check phase, after which the loop polls the network before the
 * next check phase. A request that failed before undici began to write it is dispatched a second time.
 *
 * A request that was begun is not sent again, even without a byte of an answer: measured with undici
 * 8.12, a receiver that closes its side still reads and processes a request under way. The remaining case
 * is a receiver that closes within one round trip. A short idle time makes it rare: most servers keep
 * idle connections for 5 s or longer, or announce their time, which undici obeys.
 */

import { type Dispatcher, errors } from 'undici';
import { EgressError } from './egress-error.ts';

/** For an agent with keep-alive; it must be possible to read the bodies of its requests twice. */
export const retryUnsent: Dispatcher.DispatcherComposeInterceptor =
  (dispatch) => (options, handler) => {
    let wasBegun = false;
    let isRetry = false;
    const dispatchInCheckPhase = () => void setImmediate(() => dispatch(options, watched));
    const watched: Dispatcher.DispatchHandler = {
      onRequestStart(controller, context) {
        wasBegun = true;
        handler.onRequestStart?.(controller, context);
      },
      onResponseError(controller, error) {
        if (wasBegun || isRetry || !isConnectionLost(error)) {
          handler.onResponseError?.(controller, error);
          return;
        }
        isRetry = true;
        dispatchInCheckPhase();
      },
      onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
      onResponseStarted: () => handler.onResponseStarted?.(),
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onBodySent: (...given) => handler.onBodySent?.(...given),
      onRequestSent: () => handler.onRequestSent?.(),
    };
    dispatchInCheckPhase();
    return true;
  };

/** The connector fails with an EgressError; undici reports abort, misuse and closing as its own errors. */
function isConnectionLost(error: Error): boolean {
  return !(error instanceof EgressError) && !(error instanceof errors.UndiciError);
}
